-- Injections of the runs `ids` with their outcomes.
select
    i.trajectory_id,
    i.injection_id,
    coalesce(o.class, case i.unreached_reason when 'absorbed' then 'absorbed' end, 'unsettled'),
    i.op,
    i.sham,
    coalesce(i.tool, 'the model'),
    coalesce(len(o.twins), 0)
from injections as i
left join verdicts as o using (injection_id)
where i.repeat_of is null and i.trajectory_id in (select unnest($ids))
order by i.seq, i.injection_id
