-- Runs whose ids begin with `id`, and the run of the injection `id`.
select trajectory_id from trajectories where starts_with(trajectory_id, $id)
union
select trajectory_id from injections where injection_id = $id
limit 6
