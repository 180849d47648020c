-- Injections of each campaign by outcome.
select
    campaign,
    case state when 'absorbed' then 'absorbed' else coalesce(class, 'unsettled') end,
    count(*)
from judged_injections
where campaign is not null and not sham
group by 1, 2
