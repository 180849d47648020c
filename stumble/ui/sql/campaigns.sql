-- Each campaign, the newest first.
select campaign, min(recorded_at), count(*), count(*) filter (ended is null), sum(cost_usd)
from trajectories
where campaign is not null
group by 1
order by 2 desc
