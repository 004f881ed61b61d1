-- How many rounds of an execution are pending is what the rounds say: an answer leaves the execution's row alone.
ALTER TABLE executions DROP COLUMN pending_inputs;
ALTER TABLE executions DROP COLUMN pending_approvals;

-- A list of events stays on its page, as it is, as long as it fits there: under load most are longer than what PostgreSQL
-- leaves alone by itself, and were compressed and moved out column by column.
ALTER TABLE new_events SET (toast_tuple_target = 8160);
ALTER TABLE event_groups SET (toast_tuple_target = 8160);
