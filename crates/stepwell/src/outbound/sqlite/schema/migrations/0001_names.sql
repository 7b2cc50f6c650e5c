-- Tables of names, which views read instead of numbers.

-- Names of states, for views. Checks on states leave room, so that a new one needs no rebuilding
-- of tables: which states there are is the code's matter.
create table run_status (
    number integer primary key,
    name text not null unique
) strict;
insert into run_status (number, name) values (0, 'RUNNING'), (1, 'ENDING'), (2, 'COMPLETED'),
    (3, 'FAILED'), (4, 'CANCELLED');

create table task_state (
    number integer primary key,
    name text not null unique
) strict;
insert into task_state (number, name) values (0, 'PENDING'), (1, 'QUEUED'), (2, 'RUNNING'),
    (3, 'SLEEPING'), (4, 'WAITING'), (5, 'COMPLETED'), (6, 'FAILED'), (7, 'CANCELLED'),
    (8, 'SKIPPED');

-- How attempts end, and the event of that: another one if the task will be tried again.
create table attempt_state (
    number integer primary key,
    name text not null unique,
    event text not null,
    event_if_retried text not null
) strict;
insert into attempt_state (number, name, event, event_if_retried) values
    (0, 'COMPLETED', 'COMPLETED', 'COMPLETED'),
    (1, 'FAILED', 'FAILED', 'RETRYING'),
    (2, 'TIMED_OUT', 'FAILED', 'RETRYING'),
    (3, 'CANCELLED', 'CANCELLED', 'CANCELLED'),
    (4, 'LOST', 'LEASE_LOST', 'LEASE_LOST'),
    (5, 'RELEASED', 'RELEASED', 'RELEASED'),
    (6, 'SUSPENDED', 'SUSPENDED', 'SUSPENDED');

create table memo_state (
    number integer primary key,
    name text not null unique
) strict;
insert into memo_state (number, name) values (0, 'BEGUN'), (1, 'GIVEN'), (2, 'FAILED'),
    (3, 'SLEPT'), (4, 'SIGNALLED'), (5, 'TIMED_OUT'), (6, 'ROUND');

create table wait_kind (
    number integer primary key,
    name text not null unique
) strict;
insert into wait_kind (number, name) values (0, 'signal'), (1, 'sleep'), (2, 'retry');

create table worker_state (
    number integer primary key,
    name text not null unique
) strict;
insert into worker_state (number, name)
values (0, 'ALIVE'), (1, 'LEAVING'), (2, 'DEAD'), (3, 'GONE');

-- Timers of a run as a whole stand under node numbers that no task has.
create table run_timer (
    node integer primary key,
    name text not null unique
) strict;
insert into run_timer (node, name) values (2000000001, 'deadline'), (2000000002, 'look again');
