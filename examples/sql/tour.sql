-- A tour of a store in seven statements. Run one, here the second:
--
--     stumble sql "$(sed -n '/^.. 2/,/;$/p' examples/sql/tour.sql)"

/* 1. Which runs are there, and how did they end? */
select trajectory_id, agent, model, task, condition, ended, passed, n_steps
from trajectories
order by recorded_at desc
limit 20;

/* 2. Which tools did agents call, how often, and how long did a call take? */
select tool, place, count(*) as calls, median(duration) as seconds, count_if(is_error) as errors
from tool_calls
group by tool, place
order by calls desc;

/* 3. What was injected where, and what became of it? */
select i.op, i.tool, i.place, i.original, i.mutated, v.class, v.claim
from injections as i
left join verdicts as v using (injection_id)
where not i.sham
order by i.injection_id;

/* 4. Did recovery depend on the operator? `reason` explains a missing interval. */
select op, agent, model, consumed, recovery_rate, lo, hi, silent_rate, reason
from recovery
order by silent_rate desc;

/* 5. Which step of a faulted run first differs from its clean twin's? */
with calls as (
    select t.experiment, t.condition, c.trajectory_id, c.step, c.tool, c.arguments
    from tool_calls as c
    join trajectories as t using (trajectory_id)
    where t.experiment is not null
)
select faulted.trajectory_id, min(faulted.step) as first_different_step
from calls as faulted
where
    faulted.condition = 'fault'
    and not exists (
        from calls as clean
        where
            clean.experiment = faulted.experiment
            and clean.condition = 'clean'
            and clean.tool = faulted.tool
            and clean.arguments = faulted.arguments
    )
group by faulted.trajectory_id;

/* 6. Where do the tokens go? */
select t.agent, u.model, count(*) as requests, sum(u.prompt_tokens) as prompt,
    sum(u.cached_tokens) as cached, sum(u.completion_tokens) as completion
from usage as u
join trajectories as t using (trajectory_id)
group by t.agent, u.model
order by prompt desc;

/* 7. What did the model read last before its final answer? */
select m.trajectory_id, m.role, left(m.content, 80) as content
from messages as m
where m.position >= (
    select max(position) - 1
    from messages as last
    where last.trajectory_id = m.trajectory_id and last.lane = m.lane
)
order by m.trajectory_id, m.lane, m.position;
