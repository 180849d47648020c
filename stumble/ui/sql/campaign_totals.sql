-- Runs of the campaign `name`: how many, not ended, cost, tokens, the first one's time.
select count(*), count(*) filter (ended is null), sum(cost_usd), sum(tokens), min(recorded_at)
from trajectories
where campaign = $name
