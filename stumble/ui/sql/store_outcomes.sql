-- Injections of the whole store by outcome.
select
    coalesce(o.class, case i.unreached_reason when 'absorbed' then 'absorbed' end, 'unsettled'),
    count(*)
from injections as i
left join verdicts as o using (injection_id)
where i.repeat_of is null and not coalesce(i.sham, false)
group by 1
