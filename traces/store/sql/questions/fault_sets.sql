-- How did runs with several faults end? The outcome belongs to all of their faults together.
-- default: model = null
--
-- faults: the operators of a run, sorted. class: of the fault that reached the agent, where one did
-- not; noticed_wrong before silent_wrong and recovered before masked, since a fault that was noticed
-- makes the run one that was. rates of single faults leave these runs out.
WITH sets AS (
    SELECT
        agent,
        model,
        world,
        trace,
        trajectory_id,
        list_sort(list(op)) AS faults,
        bool_or(coalesce(baseline_valid, false)) AND NOT bool_or(broken) AS counted,
        arg_min(class, coalesce(
            list_position(
                ['crashed', 'noticed_wrong', 'honest_fail', 'silent_wrong', 'recovered', 'masked'],
                class
            ),
            7
        )) AS class
    FROM judged_injections
    WHERE several_faults AND NOT sham AND ($model IS NULL OR model = $model)
    GROUP BY agent, model, world, trace, trajectory_id
)

SELECT
    agent,
    model,
    world,
    faults,
    class,
    count(*) AS runs,
    count(*) FILTER (counted) AS counted,
    count(DISTINCT trace) AS traces
FROM sets
GROUP BY agent, model, world, faults, class
ORDER BY agent, model, world, faults, runs DESC, class;
