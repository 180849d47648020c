-- The newest `most` injections of the agent `agent` and the campaign `campaign`; null for all.
select
    j.injection_id,
    j.trajectory_id,
    coalesce(j.tool, 'the model') as tool,
    j.op,
    j.class,
    j.state,
    j.handled,
    coalesce(j.excluded, 'no_verdict') as excluded,
    t.ended,
    count(*) over () as everything
from judged_injections as j
join trajectories as t using (trajectory_id)
where
    not j.sham
    and j.state != 'unfired'
    and ($agent is null or t.agent = $agent)
    and ($campaign is null or t.campaign = $campaign)
order by t.recorded_at desc, j.injection_id
limit $most
