-- Injections of the campaign `name`, at most `cells`.
select
    s.injection_id, s.op, s.persist, s.place, s.class, s.state, s.excluded, s.delivered_wrong, s.model,
    coalesce(t.task, s.trace) as trace
from judged_injections as s
join trajectories as t using (trajectory_id)
where s.campaign = $name and not s.sham
order by 1
limit $cells
