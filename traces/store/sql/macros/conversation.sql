-- Messages of the model request at an exchange: those of its lane, in order.
CREATE MACRO conversation(trajectory, exchange) AS TABLE
SELECT messages.position, messages.role, messages.content, messages.content_bytes
FROM messages
WHERE
    messages.trajectory_id = trajectory
    AND messages.first_seq <= exchange
    AND coalesce(messages.last_seq, exchange) >= exchange
    AND messages.lane IS NOT DISTINCT FROM (
        SELECT exchanges.lane
        FROM exchanges
        WHERE exchanges.trajectory_id = trajectory AND exchanges.seq = exchange
    )
ORDER BY messages.position;
