-- Tables of names, which views read instead of numbers.

-- Names of states, for views. Checks on states leave room, so that a new one needs no rebuilding
-- of tables: which states there are is the code's matter.
create table stepwell.run_status (
    number smallint primary key,
    name text not null unique
);
insert into stepwell.run_status (number, name) values (0, 'RUNNING'), (1, 'ENDING'),
    (2, 'COMPLETED'), (3, 'FAILED'), (4, 'CANCELLED');

create table stepwell.task_state (
    number smallint primary key,
    name text not null unique
);
insert into stepwell.task_state (number, name) values (0, 'PENDING'), (1, 'QUEUED'),
    (2, 'RUNNING'), (3, 'SLEEPING'), (4, 'WAITING'), (5, 'COMPLETED'), (6, 'FAILED'),
    (7, 'CANCELLED'), (8, 'SKIPPED');

-- How attempts end, and the event of that: another one if the task will be tried again.
create table stepwell.attempt_state (
    number smallint primary key,
    name text not null unique,
    event text not null,
    event_if_retried text not null
);
insert into stepwell.attempt_state (number, name, event, event_if_retried) values
    (0, 'COMPLETED', 'COMPLETED', 'COMPLETED'),
    (1, 'FAILED', 'FAILED', 'RETRYING'),
    (2, 'TIMED_OUT', 'FAILED', 'RETRYING'),
    (3, 'CANCELLED', 'CANCELLED', 'CANCELLED'),
    (4, 'LOST', 'LEASE_LOST', 'LEASE_LOST'),
    (5, 'RELEASED', 'RELEASED', 'RELEASED'),
    (6, 'SUSPENDED', 'SUSPENDED', 'SUSPENDED');

create table stepwell.memo_state (
    number smallint primary key,
    name text not null unique
);
insert into stepwell.memo_state (number, name) values (0, 'BEGUN'), (1, 'GIVEN'), (2, 'FAILED'),
    (3, 'SLEPT'), (4, 'SIGNALLED'), (5, 'TIMED_OUT'), (6, 'ROUND');

create table stepwell.wait_kind (
    number smallint primary key,
    name text not null unique
);
insert into stepwell.wait_kind (number, name) values (0, 'signal'), (1, 'sleep'), (2, 'retry');

create table stepwell.worker_state (
    number smallint primary key,
    name text not null unique
);
insert into stepwell.worker_state (number, name)
values (0, 'ALIVE'), (1, 'LEAVING'), (2, 'DEAD'), (3, 'GONE');

-- Timers of a run as a whole stand under node numbers that no task has.
create table stepwell.run_timer (
    node integer primary key,
    name text not null unique
);
insert into stepwell.run_timer (node, name) values (2000000001, 'deadline'),
    (2000000002, 'look again');
