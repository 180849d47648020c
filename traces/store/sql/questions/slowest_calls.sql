-- Which tool calls took longest?
-- default: n = 20
-- range: n = 0..
SELECT trajectory_id, step, tool, duration, place, is_error, arguments
FROM tool_calls
WHERE duration IS NOT NULL
ORDER BY duration DESC, trajectory_id, step
LIMIT $n;
