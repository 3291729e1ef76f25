"""The native thread pool as an LLVM module: it runs lists of kernels without Python.

A list is a row of records, each of int64 words:

    function, groups, groups per chunk, count of arguments, words of this record,
    the addresses of the arguments, the values of the variables

`weft_run(pool, list, count)` runs the records in order. It cuts the groups of each into chunks and
puts a *ticket* up: one word that holds the number of the job, how many chunks it has and how many
are taken. A thread takes a chunk by raising the ticket with compare-and-exchange, so a ticket of
an earlier job can never be mistaken. The caller takes chunks too, so a worker that sleeps or is
not scheduled delays nothing; when none are left, the caller waits for those still running. One
caller has the pool at a time; another one runs its list by itself, and so does a null pool.

A worker without work spins for a while and then sleeps on a condition variable. Only the caller
writes the job, and only while no chunk of it is out; whoever raises the ticket has read the job of
that ticket, because the job cannot change before its last chunk is done.

`weft_start(pool, workers)` makes threads and returns how many it got; `weft_stop(pool)` ends them.
Threads begin with all signals blocked, as their maker has them meanwhile: signals are for Python's
threads, and one that a worker took would not wake them.
"""

from __future__ import annotations

import signal
from typing import Final

NAMES: Final = ("weft_run", "weft_start", "weft_stop")
RECORD_WORDS: Final = 5
MOST_CHUNKS: Final = 0xFFFF

# Where the parts of a pool are, in bytes; the number of the next chunk is first. What different
# threads write is on lines of its own.
DONE: Final = 64
JOB: Final = 128  # function, arguments, variables, groups, groups per chunk
BUSY: Final = 192
SLEEPERS: Final = 256
STOP: Final = 260
WORKERS: Final = 320
MUTEX: Final = 384  # no system needs more than 128 bytes for these two
CONDITION: Final = 512
THREADS: Final = 640
STACK_BYTES: Final = 8 << 20  # the memory inside a kernel is here; some systems give little
SPINS: Final = 2000  # about 50 to 100 microseconds

# What tells a core that it waits: an intrinsic with its declaration.
_PAUSES: Final = {
    "x86_64": ("@llvm.x86.sse2.pause()", "@llvm.x86.sse2.pause()"),
    "aarch64": ("@llvm.aarch64.hint(i32 1)", "@llvm.aarch64.hint(i32)"),
}


def pool_bytes(workers: int) -> int:
    return THREADS + 8 * workers


def pool_module(arch: str) -> str:
    """The text of the module for an architecture such as `x86_64`."""
    pause, declaration = _PAUSES[arch]
    text = "\n".join(
        (f"declare void {declaration}", _DECLARATIONS, _WORK, _WORKER, _RUN, _START, _STOP)
    )
    for name, value in _PLACES.items():
        text = text.replace(f"${name}", str(value))
    return text.replace("$PAUSE", f"call void {pause}")


_PLACES: Final = {
    "DONE": DONE,
    "JOB_ARGS": JOB + 8,
    "JOB_VARS": JOB + 16,
    "JOB_GROUPS": JOB + 24,
    "JOB_CHUNK": JOB + 32,
    "JOB": JOB,
    "BUSY": BUSY,
    "SLEEPERS": SLEEPERS,
    "STOP": STOP,
    "WORKERS": WORKERS,
    "MUTEX": MUTEX,
    "CONDITION": CONDITION,
    "THREADS": THREADS,
    "SPINS": SPINS,
    "STACK": STACK_BYTES,
    "SET_MASK": int(signal.SIG_SETMASK),
    "HEADER": 8 * RECORD_WORDS,
    "MOST_CHUNKS": MOST_CHUNKS,
}

_DECLARATIONS: Final = """
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(ptr, ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sched_yield()
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""

# Take and run chunks of job number %epoch until none are left or another job is up.
_WORK: Final = """
define internal void @work(ptr %pool, i64 %epoch) nounwind {
entry:
  %job = getelementptr i8, ptr %pool, i64 $JOB
  %args_at = getelementptr i8, ptr %pool, i64 $JOB_ARGS
  %vars_at = getelementptr i8, ptr %pool, i64 $JOB_VARS
  %groups_at = getelementptr i8, ptr %pool, i64 $JOB_GROUPS
  %chunk_at = getelementptr i8, ptr %pool, i64 $JOB_CHUNK
  %done = getelementptr i8, ptr %pool, i64 $DONE
  br label %look
look:
  %ticket = load atomic i64, ptr %pool acquire, align 8
  %number = lshr i64 %ticket, 32
  %is_ours = icmp eq i64 %number, %epoch
  %taken = and i64 %ticket, 65535
  %shifted = lshr i64 %ticket, 16
  %chunks = and i64 %shifted, 65535
  %is_left = icmp ult i64 %taken, %chunks
  %may_take = and i1 %is_ours, %is_left
  br i1 %may_take, label %take, label %leave
take:
  %function = load atomic ptr, ptr %job monotonic, align 8
  %args = load atomic ptr, ptr %args_at monotonic, align 8
  %vars = load atomic ptr, ptr %vars_at monotonic, align 8
  %groups = load atomic i64, ptr %groups_at monotonic, align 8
  %chunk = load atomic i64, ptr %chunk_at monotonic, align 8
  %raised = add i64 %ticket, 1
  %result = cmpxchg ptr %pool, i64 %ticket, i64 %raised acq_rel acquire
  %is_taken = extractvalue { i64, i1 } %result, 1
  br i1 %is_taken, label %run, label %look
run:
  %begin = mul i64 %taken, %chunk
  %stop = add i64 %begin, %chunk
  %end = call i64 @llvm.umin.i64(i64 %stop, i64 %groups)
  call void %function(ptr %args, ptr %vars, i64 %begin, i64 %end)
  %before = atomicrmw add ptr %done, i64 1 acq_rel
  br label %look
leave:
  ret void
}
"""

# The life of a thread: wait for a job with another number than the last one, and work on it.
_WORKER: Final = """
define internal ptr @worker(ptr %pool) nounwind {
entry:
  %stop_at = getelementptr i8, ptr %pool, i64 $STOP
  %sleepers = getelementptr i8, ptr %pool, i64 $SLEEPERS
  %mutex = getelementptr i8, ptr %pool, i64 $MUTEX
  %condition = getelementptr i8, ptr %pool, i64 $CONDITION
  br label %idle
idle:
  %last = phi i64 [ 0, %entry ], [ %epoch, %job ]
  br label %look
look:
  %spins = phi i64 [ 0, %idle ], [ %spun, %spin ], [ 0, %awake ]
  %ticket = load atomic i64, ptr %pool acquire, align 8
  %epoch = lshr i64 %ticket, 32
  %is_new = icmp ne i64 %epoch, %last
  br i1 %is_new, label %job, label %rest
job:
  call void @work(ptr %pool, i64 %epoch)
  br label %idle
rest:
  %stop = load atomic i32, ptr %stop_at acquire, align 4
  %is_over = icmp ne i32 %stop, 0
  br i1 %is_over, label %leave, label %stay
stay:
  %spun = add i64 %spins, 1
  %is_tired = icmp ugt i64 %spun, $SPINS
  br i1 %is_tired, label %sleep, label %spin
spin:
  $PAUSE
  br label %look
sleep:
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  %more = atomicrmw add ptr %sleepers, i32 1 seq_cst
  br label %check
check:
  %ticket_now = load atomic i64, ptr %pool seq_cst, align 8
  %epoch_now = lshr i64 %ticket_now, 32
  %is_same = icmp eq i64 %epoch_now, %last
  %stop_now = load atomic i32, ptr %stop_at seq_cst, align 4
  %goes_on = icmp eq i32 %stop_now, 0
  %may_sleep = and i1 %is_same, %goes_on
  br i1 %may_sleep, label %wait, label %awake
wait:
  %waited = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %check
awake:
  %less = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %look
leave:
  ret ptr null
}
define internal void @wake(ptr %pool) nounwind {
  %mutex = getelementptr i8, ptr %pool, i64 $MUTEX
  %condition = getelementptr i8, ptr %pool, i64 $CONDITION
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  %woken = call i32 @pthread_cond_broadcast(ptr %condition)
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}
"""

# One record over all threads, and a list of records.
_RUN: Final = """
define internal void @share(
    ptr %pool, ptr %function, ptr %args, ptr %vars, i64 %groups, i64 %chunk, i64 %chunks
) nounwind {
entry:
  %job = getelementptr i8, ptr %pool, i64 $JOB
  %args_at = getelementptr i8, ptr %pool, i64 $JOB_ARGS
  %vars_at = getelementptr i8, ptr %pool, i64 $JOB_VARS
  %groups_at = getelementptr i8, ptr %pool, i64 $JOB_GROUPS
  %chunk_at = getelementptr i8, ptr %pool, i64 $JOB_CHUNK
  %done = getelementptr i8, ptr %pool, i64 $DONE
  %sleepers = getelementptr i8, ptr %pool, i64 $SLEEPERS
  store atomic ptr %function, ptr %job monotonic, align 8
  store atomic ptr %args, ptr %args_at monotonic, align 8
  store atomic ptr %vars, ptr %vars_at monotonic, align 8
  store atomic i64 %groups, ptr %groups_at monotonic, align 8
  store atomic i64 %chunk, ptr %chunk_at monotonic, align 8
  store atomic i64 0, ptr %done monotonic, align 8
  %old = load atomic i64, ptr %pool monotonic, align 8
  %old_epoch = lshr i64 %old, 32
  %next = add i64 %old_epoch, 1
  %wrapped = and i64 %next, 4294967295
  %is_zero = icmp eq i64 %wrapped, 0
  %epoch = select i1 %is_zero, i64 1, i64 %wrapped
  %high = shl i64 %epoch, 32
  %middle = shl i64 %chunks, 16
  %ticket = or i64 %high, %middle
  store atomic i64 %ticket, ptr %pool seq_cst, align 8
  %asleep = load atomic i32, ptr %sleepers seq_cst, align 4
  %is_any = icmp ne i32 %asleep, 0
  br i1 %is_any, label %call, label %work
call:
  call void @wake(ptr %pool)
  br label %work
work:
  call void @work(ptr %pool, i64 %epoch)
  br label %look
look:
  %spins = phi i64 [ 0, %work ], [ %spun, %pause ], [ %spun, %yield ]
  %count = load atomic i64, ptr %done acquire, align 8
  %is_over = icmp uge i64 %count, %chunks
  br i1 %is_over, label %leave, label %wait
wait:
  %spun = add i64 %spins, 1
  %is_tired = icmp ugt i64 %spun, $SPINS
  br i1 %is_tired, label %yield, label %pause
pause:
  $PAUSE
  br label %look
yield:
  %yielded = call i32 @sched_yield()
  br label %look
leave:
  ret void
}
define void @weft_run(ptr %pool, ptr %list, i64 %count) nounwind {
entry:
  %has_pool = icmp ne ptr %pool, null
  %busy = getelementptr i8, ptr %pool, i64 $BUSY
  br i1 %has_pool, label %lock, label %start
lock:
  %result = cmpxchg ptr %busy, i32 0, i32 1 acq_rel monotonic
  %got = extractvalue { i32, i1 } %result, 1
  br label %start
start:
  %is_leader = phi i1 [ false, %entry ], [ %got, %lock ]
  br label %look
look:
  %record = phi ptr [ %list, %start ], [ %after, %next ]
  %number = phi i64 [ 0, %start ], [ %number_next, %next ]
  %is_left = icmp ult i64 %number, %count
  br i1 %is_left, label %read, label %finish
read:
  %function = load ptr, ptr %record, align 8
  %groups_at = getelementptr i64, ptr %record, i64 1
  %groups = load i64, ptr %groups_at, align 8
  %chunk_at = getelementptr i64, ptr %record, i64 2
  %chunk_asked = load i64, ptr %chunk_at, align 8
  %arguments_at = getelementptr i64, ptr %record, i64 3
  %arguments = load i64, ptr %arguments_at, align 8
  %words_at = getelementptr i64, ptr %record, i64 4
  %words = load i64, ptr %words_at, align 8
  %args = getelementptr i8, ptr %record, i64 $HEADER
  %vars = getelementptr i64, ptr %args, i64 %arguments
  %least = udiv i64 %groups, $MOST_CHUNKS
  %least_chunk = add i64 %least, 1
  %is_small = icmp ult i64 %chunk_asked, %least_chunk
  %chunk = select i1 %is_small, i64 %least_chunk, i64 %chunk_asked
  %is_short = icmp ule i64 %groups, %chunk
  %is_other = xor i1 %is_leader, true
  %runs_here = or i1 %is_short, %is_other
  br i1 %runs_here, label %here, label %shared
here:
  call void %function(ptr %args, ptr %vars, i64 0, i64 %groups)
  br label %next
shared:
  %rounded = add i64 %groups, %chunk
  %last = sub i64 %rounded, 1
  %chunks = udiv i64 %last, %chunk
  call void @share(
      ptr %pool, ptr %function, ptr %args, ptr %vars, i64 %groups, i64 %chunk, i64 %chunks)
  br label %next
next:
  %after = getelementptr i64, ptr %record, i64 %words
  %number_next = add i64 %number, 1
  br label %look
finish:
  br i1 %is_leader, label %unlock, label %leave
unlock:
  store atomic i32 0, ptr %busy release, align 4
  br label %leave
leave:
  ret void
}
"""

_START: Final = """
define i64 @weft_start(ptr %pool, i64 %workers) nounwind {
entry:
  %mutex = getelementptr i8, ptr %pool, i64 $MUTEX
  %condition = getelementptr i8, ptr %pool, i64 $CONDITION
  %threads = getelementptr i8, ptr %pool, i64 $THREADS
  %workers_at = getelementptr i8, ptr %pool, i64 $WORKERS
  %attributes = alloca [128 x i8], align 16
  %blocked = alloca [128 x i8], align 16
  %before = alloca [128 x i8], align 16
  call void @llvm.memset.p0.i64(ptr %blocked, i8 255, i64 128, i1 false)
  %b = call i32 @pthread_sigmask(i32 $SET_MASK, ptr %blocked, ptr %before)
  %a = call i32 @pthread_attr_init(ptr %attributes)
  %s = call i32 @pthread_attr_setstacksize(ptr %attributes, i64 $STACK)
  %m = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %c = call i32 @pthread_cond_init(ptr %condition, ptr null)
  br label %look
look:
  %number = phi i64 [ 0, %entry ], [ %next, %made ]
  %is_left = icmp ult i64 %number, %workers
  br i1 %is_left, label %make, label %leave
make:
  %thread = getelementptr i64, ptr %threads, i64 %number
  %failed = call i32 @pthread_create(ptr %thread, ptr %attributes, ptr @worker, ptr %pool)
  %is_made = icmp eq i32 %failed, 0
  br i1 %is_made, label %made, label %leave
made:
  %next = add i64 %number, 1
  br label %look
leave:
  store i64 %number, ptr %workers_at, align 8
  %d = call i32 @pthread_attr_destroy(ptr %attributes)
  %r = call i32 @pthread_sigmask(i32 $SET_MASK, ptr %before, ptr null)
  ret i64 %number
}
"""

_STOP: Final = """
define void @weft_stop(ptr %pool) nounwind {
entry:
  %stop_at = getelementptr i8, ptr %pool, i64 $STOP
  %threads = getelementptr i8, ptr %pool, i64 $THREADS
  %workers_at = getelementptr i8, ptr %pool, i64 $WORKERS
  %workers = load i64, ptr %workers_at, align 8
  store atomic i32 1, ptr %stop_at seq_cst, align 4
  call void @wake(ptr %pool)
  br label %look
look:
  %number = phi i64 [ 0, %entry ], [ %next, %join ]
  %is_left = icmp ult i64 %number, %workers
  br i1 %is_left, label %join, label %leave
join:
  %thread = getelementptr i64, ptr %threads, i64 %number
  %handle = load ptr, ptr %thread, align 8
  %failed = call i32 @pthread_join(ptr %handle, ptr null)
  %next = add i64 %number, 1
  br label %look
leave:
  ret void
}
"""
