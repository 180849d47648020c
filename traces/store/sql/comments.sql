-- What the relations and their columns are, for clients that show comments. Times are seconds, sizes
-- bytes, money US dollars; NULL is unknown.

COMMENT ON TABLE trajectories IS 'A run';
COMMENT ON COLUMN trajectories."trajectory_id" IS 'Id of the run';
COMMENT ON COLUMN trajectories."agent" IS 'Name of the agent';
COMMENT ON COLUMN trajectories."model" IS 'Name of the model, as the source has it';
COMMENT ON COLUMN trajectories."scenario" IS 'Suite or scenario of the task';
COMMENT ON COLUMN trajectories."task" IS 'Id of the task';
COMMENT ON COLUMN trajectories."trial" IS 'Number of the attempt at the task';
COMMENT ON COLUMN trajectories."condition" IS 'clean, fault, sham';
COMMENT ON COLUMN trajectories."world" IS 'fresh, recorded, none';
COMMENT ON COLUMN trajectories."seed" IS 'Seed of the run';
COMMENT ON COLUMN trajectories."parent_id" IS 'Run that this one replays or forks; NULL: none';
COMMENT ON COLUMN trajectories."forked_at" IS
    'Call at which it leaves its recording; NULL: no fork';
COMMENT ON COLUMN trajectories."recorded_at" IS 'UTC; rows give seconds since the epoch';
COMMENT ON COLUMN trajectories."source" IS
    'What it is from: recording, replay, fork, or the format of an import';
COMMENT ON COLUMN trajectories."n_steps" IS
    'The agent''s steps; user and system messages do not count';
COMMENT ON COLUMN trajectories."passed" IS 'Whether the end state is right; NULL: unknown';
COMMENT ON COLUMN trajectories."reward" IS 'Score of the verifier';
COMMENT ON COLUMN trajectories."ended" IS
    'final, abstain, crash, budget, harness, diverged, replay_miss';
COMMENT ON COLUMN trajectories."cost_usd" IS 'US dollars; NULL: unknown';
COMMENT ON COLUMN trajectories."seconds" IS 'Seconds from the first to the last event';
COMMENT ON COLUMN trajectories."tokens" IS 'to and from models';
COMMENT ON COLUMN trajectories."agent_exit" IS 'Exit code of the agent';
COMMENT ON COLUMN trajectories."verifier" IS 'What judged the end state';
COMMENT ON COLUMN trajectories."cohort" IS 'Runs that an efficiency index compares';
COMMENT ON COLUMN trajectories."cascades" IS
    'Lanes that went live because of a fork; NULL: no fork';
COMMENT ON COLUMN trajectories."drifted" IS 'Pinned results of local tools; NULL: no fork';
COMMENT ON COLUMN trajectories."substituted" IS
    'Live values before a fork shown as recorded; NULL: no fork';
COMMENT ON COLUMN trajectories."renamed" IS
    'Ids of the live world that requests got; NULL: no fork';
COMMENT ON COLUMN trajectories."remade" IS 'Runs that left the recording first; NULL: no fork';
COMMENT ON COLUMN trajectories."campaign" IS 'NULL: none';
COMMENT ON COLUMN trajectories."cell" IS 'Which of the campaign''s runs; NULL: no campaign';
COMMENT ON COLUMN trajectories."prompt_tokens" IS 'of the complete run, cached ones included';
COMMENT ON COLUMN trajectories."cached_tokens" IS 'Those of the prompt that came from a cache';
COMMENT ON COLUMN trajectories."completion_tokens" IS 'Reasoning tokens included';
COMMENT ON COLUMN trajectories."reasoning_tokens" IS 'Those of the completion that were reasoning';
COMMENT ON COLUMN trajectories."ramp_tokens" IS
    'as a RAMP board counts them: cached ones etc. twice';
COMMENT ON COLUMN trajectories."experiment" IS
    'The fork or campaign of the run; NULL: none, or not recorded';
COMMENT ON COLUMN trajectories."control_group" IS
    'digest, the same for a faulted run and its twins';
COMMENT ON COLUMN trajectories."controls" IS 'Cells of its twins; empty: all of the experiment';
COMMENT ON COLUMN trajectories."verifier_of" IS 'Digest of the commands that judged the end state';
COMMENT ON COLUMN trajectories."state" IS 'Digest of the end state, if a command printed it';
COMMENT ON COLUMN trajectories."passed_by" IS 'verifier, state: source of passed; NULL: none';
COMMENT ON COLUMN trajectories."passed_reason" IS 'Why passed is NULL';
COMMENT ON COLUMN trajectories."seal" IS 'Digest of its sealed plan; NULL: not sealed';
COMMENT ON COLUMN trajectories."cut_at" IS 'Last exchange of a recording without an end';
COMMENT ON COLUMN trajectories."fidelity" IS 'bytes, messages, span: what its steps are read from';
COMMENT ON COLUMN trajectories."model_family" IS 'The model without provider, region, date and tag';
COMMENT ON COLUMN trajectories."cost_source" IS
    'of cost_usd: reported, or list_price of the tokens';

COMMENT ON TABLE exchanges IS 'A request and its response';
COMMENT ON COLUMN exchanges."trajectory_id" IS 'Id of the run';
COMMENT ON COLUMN exchanges."seq" IS 'Number of the exchange in its run';
COMMENT ON COLUMN exchanges."lane" IS 'Number of the conversation, from 0';
COMMENT ON COLUMN exchanges."kind" IS 'model, tool, other';
COMMENT ON COLUMN exchanges."transport" IS 'http, websocket, stdio';
COMMENT ON COLUMN exchanges."method" IS 'HTTP method; TEXT or BINARY for a WebSocket message';
COMMENT ON COLUMN exchanges."url" IS 'Address of the request';
COMMENT ON COLUMN exchanges."status" IS 'HTTP status; NULL: no response';
COMMENT ON COLUMN exchanges."error" IS 'Why there is no complete response';
COMMENT ON COLUMN exchanges."started" IS 'Seconds since the start of the run';
COMMENT ON COLUMN exchanges."duration" IS 'Seconds from request to end of response';
COMMENT ON COLUMN exchanges."ttfb" IS 'Seconds to the first byte of the response';
COMMENT ON COLUMN exchanges."request_bytes" IS 'Size of the request body';
COMMENT ON COLUMN exchanges."response_bytes" IS 'Size of the response body';
COMMENT ON COLUMN exchanges."n_chunks" IS 'Chunks that the response came in';
COMMENT ON COLUMN exchanges."attempt_of" IS 'Exchange that this one repeats; NULL: none';
COMMENT ON COLUMN exchanges."answered_by" IS 'live, recorded, simulated, fault, refused';
COMMENT ON COLUMN exchanges."tape" IS 'Path of the tape';
COMMENT ON COLUMN exchanges."offset" IS 'Where the exchange is on the tape';
COMMENT ON COLUMN exchanges."length" IS 'Bytes of it on the tape';
COMMENT ON COLUMN exchanges."cascade" IS 'live, in a lane other than the forked one';
COMMENT ON COLUMN exchanges."rpc" IS 'Method of MCP (tools/call get_order), gRPC, JSON-RPC';

COMMENT ON TABLE steps IS 'A message of the model, the user or the system';
COMMENT ON COLUMN steps."trajectory_id" IS 'Id of the run';
COMMENT ON COLUMN steps."step" IS 'Number of the step, from 1';
COMMENT ON COLUMN steps."source" IS 'system, user, agent';
COMMENT ON COLUMN steps."message" IS 'Its text, at most 8,192 bytes';
COMMENT ON COLUMN steps."model" IS 'Name of the model, as the source has it';
COMMENT ON COLUMN steps."seqs" IS 'Exchanges of the step';
COMMENT ON COLUMN steps."finish_reason" IS 'as the provider wrote it; NULL: the answer was cut off';
COMMENT ON COLUMN steps."hosted" IS
    'JSON: tool, arguments, result, is_error of what the provider ran';
COMMENT ON COLUMN steps."media" IS 'image, audio, video, document: parts that are no text';

COMMENT ON TABLE tool_calls IS 'A call of a tool';
COMMENT ON COLUMN tool_calls."trajectory_id" IS 'Id of the run';
COMMENT ON COLUMN tool_calls."step" IS 'Number of the step, from 1';
COMMENT ON COLUMN tool_calls."call_id" IS 'Id of the call';
COMMENT ON COLUMN tool_calls."tool" IS 'Name of the tool';
COMMENT ON COLUMN tool_calls."arguments" IS 'as the model wrote them, at most 8,192 bytes';
COMMENT ON COLUMN tool_calls."result" IS 'Text of the result, at most 8,192 bytes; NULL: none';
COMMENT ON COLUMN tool_calls."is_error" IS 'Whether the call failed; NULL: unknown';
COMMENT ON COLUMN tool_calls."place" IS 'http, mcp, local, provider';
COMMENT ON COLUMN tool_calls."read_only" IS 'Whether it changes nothing; NULL: unknown';
COMMENT ON COLUMN tool_calls."join" IS 'id, map, window, args';
COMMENT ON COLUMN tool_calls."seq" IS 'Last exchange of the call; NULL: none';
COMMENT ON COLUMN tool_calls."duration" IS 'Seconds of the call; NULL: unknown';
COMMENT ON COLUMN tool_calls."faulted" IS 'Whether a fault changed it';
COMMENT ON COLUMN tool_calls."arguments_bytes" IS 'Full size of the arguments';
COMMENT ON COLUMN tool_calls."result_bytes" IS 'Full size of the result';
COMMENT ON COLUMN tool_calls."answered_by" IS 'of its last exchange: live, recorded, fault, ...';
COMMENT ON COLUMN tool_calls."drifted" IS 'The model got the recorded result instead';
COMMENT ON COLUMN tool_calls."position" IS 'Its place among the calls of its step, from 1';
COMMENT ON COLUMN tool_calls."incomplete" IS
    'The answer ended before the arguments did; NULL: unknown';

COMMENT ON TABLE messages IS 'A message of a conversation, and the requests that carried it';
COMMENT ON COLUMN messages."trajectory_id" IS 'Id of the run';
COMMENT ON COLUMN messages."first_seq" IS 'First request that has the message';
COMMENT ON COLUMN messages."position" IS 'Place in its conversation, from 0';
COMMENT ON COLUMN messages."last_seq" IS 'Last request that has it';
COMMENT ON COLUMN messages."role" IS 'system, user, assistant, tool';
COMMENT ON COLUMN messages."content" IS 'Its text, at most 8,192 bytes';
COMMENT ON COLUMN messages."content_bytes" IS 'Full size of the text';
COMMENT ON COLUMN messages."lane" IS 'Number of the conversation, from 0';
COMMENT ON COLUMN messages."digest" IS 'of an imported conversation up to this message';
COMMENT ON COLUMN messages."media" IS 'image, audio, video, document: parts that are no text';

COMMENT ON TABLE usage IS 'Tokens and cost of a response of a model';
COMMENT ON COLUMN usage."trajectory_id" IS 'Id of the run';
COMMENT ON COLUMN usage."seq" IS 'Number of the exchange in its run';
COMMENT ON COLUMN usage."model" IS 'Name of the model of the response';
COMMENT ON COLUMN usage."prompt_tokens" IS 'Cached ones included';
COMMENT ON COLUMN usage."cached_tokens" IS 'Those of the prompt that came from a cache';
COMMENT ON COLUMN usage."completion_tokens" IS 'Reasoning tokens included';
COMMENT ON COLUMN usage."reasoning_tokens" IS 'Those of the completion that were reasoning';
COMMENT ON COLUMN usage."cost_usd" IS 'US dollars by list price; NULL: no price is known';
COMMENT ON COLUMN usage."cost_reported_usd" IS
    'US dollars as the source reports them; NULL: it does not';

COMMENT ON TABLE injections IS 'A fault that fired';
COMMENT ON COLUMN injections."injection_id" IS 'Id of the injection';
COMMENT ON COLUMN injections."trajectory_id" IS 'Id of the run';
COMMENT ON COLUMN injections."seq" IS 'Exchange that was changed';
COMMENT ON COLUMN injections."step" IS 'Number of the step, from 1';
COMMENT ON COLUMN injections."tool" IS 'Name of the tool';
COMMENT ON COLUMN injections."op" IS 'Operator of the fault';
COMMENT ON COLUMN injections."family" IS 'Family of the operator';
COMMENT ON COLUMN injections."params" IS 'JSON';
COMMENT ON COLUMN injections."place" IS 'http, mcp, model-boundary, model';
COMMENT ON COLUMN injections."persist" IS 'as given: once, burst:n=3, ...';
COMMENT ON COLUMN injections."address" IS 'Where in the body the value stands';
COMMENT ON COLUMN injections."original" IS 'The value before';
COMMENT ON COLUMN injections."mutated" IS 'The value after';
COMMENT ON COLUMN injections."error_channel" IS 'http, jsonrpc, flag, text, none';
COMMENT ON COLUMN injections."detect" IS 'D0 to D4';
COMMENT ON COLUMN injections."sham" IS 'Whether it changes nothing';
COMMENT ON COLUMN injections."consumed" IS 'Whether the model got the changed value';
COMMENT ON COLUMN injections."unreached_reason" IS
    'not_fired, absorbed, ended_before, no_site, ...';
COMMENT ON COLUMN injections."call_id" IS 'Call whose result it is in';
COMMENT ON COLUMN injections."rendered" IS 'Whether the agent showed the value to its model';
COMMENT ON COLUMN injections."eligible_after" IS 'The agent''s steps after it in the clean twin';
COMMENT ON COLUMN injections."repeat_of" IS 'The first injection of the same fault in the run';
COMMENT ON COLUMN injections."dead" IS 'The clean run did not use the replaced value';

COMMENT ON TABLE outcomes IS 'The verdict of one judge version on an injection';
COMMENT ON COLUMN outcomes."injection_id" IS 'Id of the injection';
COMMENT ON COLUMN outcomes."judge_version" IS 'Version of the judge';
COMMENT ON COLUMN outcomes."twins" IS 'Clean runs that it is compared with';
COMMENT ON COLUMN outcomes."class" IS
    'recovered, masked, honest_fail, noticed_wrong, silent_wrong, ...';
COMMENT ON COLUMN outcomes."noticed" IS 'Whether the agent noticed; NULL: unknown';
COMMENT ON COLUMN outcomes."recovered" IS 'noticed, and ends right';
COMMENT ON COLUMN outcomes."passed" IS 'Whether the end state is right; NULL: unknown';
COMMENT ON COLUMN outcomes."claims_success" IS 'Whether the agent says that it succeeded';
COMMENT ON COLUMN outcomes."first_use_step" IS 'Step that first uses the changed value';
COMMENT ON COLUMN outcomes."evidence" IS 'JSON';
COMMENT ON COLUMN outcomes."baseline_valid" IS 'Whether the clean twins are right';
COMMENT ON COLUMN outcomes."noticed_soft" IS 'An ambiguous signal; never in noticed';
COMMENT ON COLUMN outcomes."signals" IS 'Codes of the hard signals: N1, N5, ...';
COMMENT ON COLUMN outcomes."soft_signals" IS 'Codes of the ambiguous signals';
COMMENT ON COLUMN outcomes."noticed_step" IS 'Step of the first hard signal';
COMMENT ON COLUMN outcomes."used_in_write" IS 'Whether a write used the value';
COMMENT ON COLUMN outcomes."used_in_final" IS 'Whether the last answer used it';
COMMENT ON COLUMN outcomes."level" IS 'exact, format, rounded, derived';
COMMENT ON COLUMN outcomes."truth_reobserved" IS
    'The step whose result showed the true value again';
COMMENT ON COLUMN outcomes."reported" IS 'Whether the agent reported it';
COMMENT ON COLUMN outcomes."corrected" IS 'Used only before the true value was seen again';
COMMENT ON COLUMN outcomes."control_only" IS 'No value was used, but the run took another path';
COMMENT ON COLUMN outcomes."dead_in_twins" IS 'No clean twin used the replaced value';
COMMENT ON COLUMN outcomes."blast_radius" IS 'Writes made with the wrong value';
COMMENT ON COLUMN outcomes."masked_as" IS 'dead, overwritten, default, lucky';
COMMENT ON COLUMN outcomes."passed_given_wrong_value" IS
    'D4 only: right if the wrong value were true';
COMMENT ON COLUMN outcomes."steps_after" IS 'The agent''s steps after the faulted result';
COMMENT ON COLUMN outcomes."reasons" IS 'JSON: why a column is NULL, by column name';
COMMENT ON COLUMN outcomes."unsafe_retry" IS 'The client repeated a write that was carried out';
COMMENT ON COLUMN outcomes."writes_extra" IS 'Beyond those of the twins; negative: missing';
COMMENT ON COLUMN outcomes."claim" IS 'delivered, partial, abstained, asks, admits_failure, ...';
COMMENT ON COLUMN outcomes."claim_basis" IS 'end, form, writes, values, structure, words';
COMMENT ON COLUMN outcomes."claim_evidence" IS 'Text that the claim is read from';
COMMENT ON COLUMN outcomes."false_failure" IS 'The end is right, but the agent claims failure';
COMMENT ON COLUMN outcomes."told_wrong" IS 'The last answer states the wrong value as right';
COMMENT ON COLUMN outcomes."noticeable" IS 'FALSE for a delay, D4, or a value nothing depends on';
COMMENT ON COLUMN outcomes."changes_what_model_saw" IS 'FALSE if only the time differed';
COMMENT ON COLUMN outcomes."notice_probability" IS
    'That it noticed; noticed is unknown from .1 to .9';
COMMENT ON COLUMN outcomes."notice_error" IS
    'of the strongest signal if the fault made no difference';
COMMENT ON COLUMN outcomes."signs" IS 'JSON: code, step, strength, error and twins of each signal';
COMMENT ON COLUMN outcomes."double_action" IS
    'An effect was committed again, by the world''s ledger';
COMMENT ON COLUMN outcomes."lost_action" IS 'An effect that all clean twins committed is missing';
COMMENT ON COLUMN outcomes."obeyed" IS 'An instruction in the tool''s answer was obeyed; NULL: unknown, or there was none';
COMMENT ON COLUMN outcomes."effect_changes" IS 'JSON: these effects in words';

COMMENT ON TABLE stages IS 'A stage of a compiler pipeline run';
COMMENT ON COLUMN stages."trajectory_id" IS 'Id of the run';
COMMENT ON COLUMN stages."stage" IS 'T0 to T5';
COMMENT ON COLUMN stages."score" IS '0 to 100';
COMMENT ON COLUMN stages."passed" IS 'Whether all cases are right';
COMMENT ON COLUMN stages."ramp_score" IS 'T4 by RAMP''s formula; NULL of other stages';
COMMENT ON COLUMN stages."chain_score" IS
    'T4 on the IR of the agent''s own T3; NULL if that was golden';
COMMENT ON COLUMN stages."provenance" IS 'own, golden: source of the stage''s input';
COMMENT ON COLUMN stages."resurrected" IS 'Whether its input was golden after a failure';
COMMENT ON COLUMN stages."outcome" IS
    'pass, fail, agent_error, limit, infrastructure_error, provider (no request of the agent caused
its failure; the score is NULL), not_attempted (a budget was used up before, so the existing files
were graded)';
COMMENT ON COLUMN stages."seconds" IS 'of the agent';
COMMENT ON COLUMN stages."cost_usd" IS 'US dollars of the stage; NULL: unknown';
COMMENT ON COLUMN stages."tokens" IS 'Prompt and completion';
COMMENT ON COLUMN stages."calls" IS 'Model responses';
COMMENT ON COLUMN stages."agent_exit" IS 'NULL if a budget ended it, or it was not started';
COMMENT ON COLUMN stages."budget" IS 'calls, tokens, dollars, seconds: which one ended it';
COMMENT ON COLUMN stages."cases" IS 'Graded programs';
COMMENT ON COLUMN stages."reached" IS 'Cases whose stage input is right';
COMMENT ON COLUMN stages."solved" IS 'Cases with score 100';
COMMENT ON COLUMN stages."mode" IS 'guided, progressive, autonomous';
COMMENT ON COLUMN stages."arm" IS 'resurrect, no-resurrection, from-golden';
COMMENT ON COLUMN stages."sandbox" IS 'docker, process';
COMMENT ON COLUMN stages."seen" IS 'JSON: what its self-test read of the run; NULL if it had none';
COMMENT ON COLUMN stages."workload" IS 'Pack of programs';
COMMENT ON COLUMN stages."program_bytes" IS
    'Text that the stage''s program consists of, without the starter''s; NULL: unknown';
COMMENT ON COLUMN stages."unwritten_bytes" IS 'of it, what no answer of the model holds';
COMMENT ON COLUMN stages."unwritten_files" IS 'JSON: bytes of it by file, the most first';
COMMENT ON COLUMN stages."attempts" IS 'Starts of the agent at this stage; NULL on older tapes';
COMMENT ON COLUMN stages."attempts_allowed" IS 'Starts of the agent at this stage, at most';
COMMENT ON COLUMN stages."attempt_scores" IS 'JSON: the score of each, the last one counts';
COMMENT ON COLUMN stages."failure" IS 'infrastructure, context, provider, budget, tooling, ...';
COMMENT ON COLUMN stages."failure_evidence" IS 'JSON: which exchange, which text';

COMMENT ON TABLE stage_cases IS 'A graded program of a stage';
COMMENT ON COLUMN stage_cases."trajectory_id" IS 'Id of the run';
COMMENT ON COLUMN stage_cases."stage" IS 'T0 to T5';
COMMENT ON COLUMN stage_cases."program" IS 'The case';
COMMENT ON COLUMN stage_cases."result" IS 'pass, fail, agent_error, limit, infrastructure_error';
COMMENT ON COLUMN stage_cases."score" IS '0 to 100';
COMMENT ON COLUMN stage_cases."reached" IS 'Whether the stage''s input was right for it';
COMMENT ON COLUMN stage_cases."why" IS
    'NULL if it is right, or on a tape from before reasons were kept';
