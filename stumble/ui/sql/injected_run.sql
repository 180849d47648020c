-- The run of the injection `id`.
select trajectory_id from injections where injection_id = $id
