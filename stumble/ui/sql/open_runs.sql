-- The newest runs without an end.
select trajectory_id
from trajectories
where ended is null and source in ('record', 'fork', 'replay', 'resume')
order by recorded_at desc
limit 20
