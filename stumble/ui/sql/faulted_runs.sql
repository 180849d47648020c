-- Injection, class and run of the faulted runs among `runs`.
select injection_id, coalesce(class, 'unsettled'), trajectory_id
from injections
left join verdicts using (injection_id)
where repeat_of is null and trajectory_id in (select unnest($runs))
order by 1
