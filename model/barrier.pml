/*
 * The guarantee of the barrier, for spin: no request is at the pod when the ack is given, and none
 * reaches it afterwards. One address; a gateway with two workers, a third that replaces a killed one,
 * a second gateway that joins while the drain is under way; and the agent.
 *
 * A worker:   pick any node, and read the client's body for as long as that takes; then, per connect,
 *                      (1) count up    (2) read the entry; denied: count down, pick another
 * The agent:           (1) entry draining            (2) wait: in flight 0, no bypass since last read
 *                      (3) seal, check that it holds     (4) read in flight again, 0: ack
 *
 * The model leaves out the first pick, because it proves nothing: it may be of any age, and its read
 * of the entry is not used. The model includes: connects that find no other node (bypass), also on a
 * retry that has tried the others; workers that are frozen at any point, also between read and
 * connect; a worker killed at any point, whose counts are dropped only once its connections are gone;
 * counts that are read in sequence while workers continue; an entry that can expire until the agent
 * has read that it holds.
 *
 * Each of these, given with -D, breaks the guarantee, and spin must detect it (check.ts runs them all):
 *   SWAPPED     a worker reads first and counts afterwards, as if the read at the pick were enough
 *   NO_SEAL     the agent acks after (2)
 *   NO_REREAD   the agent acks after (3)
 *   BLIND       (4) reads the counts but not whether the entry still holds
 *   RESET_ALL   counts are not kept per worker: when one dies, all are reset
 *   EARLY_DROP  a killed worker's counts are dropped while its connections are still open
 *   TRUST_NEW   the agent does not ask a gateway that joined
 * And REACHED must "fail" too: it claims that the ack is never given.
 *
 * The whole model is too large for one search, so it is searched in parts, chosen with -D:
 *   WORKERS=n (1, 2)  CONNECTS=n (each worker makes)  KILL  EXPIRY  JOIN
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef CONNECTS
#define CONNECTS 1
#endif

#define OPEN     0
#define DRAINING 1
#define SEALED   2

#define SLOTS    4      /* numbers of processes: 0 and 1; 2 replaces, 3 joins */
#define REPLACES 2
#define JOINS    3

byte entry[2] = OPEN;         /* the deny-list of each gateway */
byte count[SLOTS];            /* in flight, by process */
bool present[SLOTS];          /* registered, and not known to be dead */
bool at_pod[SLOTS];           /* one of its requests is at the pod */
bool killed[SLOTS];
bool bypassed, acked, holds, joined, expired;
bool lives[SLOTS];         /* of the agent: the processes that it reads */

#define gateway(w) (w == JOINS -> 1 : 0)

/* One connect, by process w, up to the end of the request. */
inline connect(w, seen, other) {
  if
  :: other = true
  :: other = false       /* no other node known, or a retry that has tried them */
  fi;

#ifdef SWAPPED
  seen = entry[gateway(w)];
#else
  count[w]++;
  seen = entry[gateway(w)];
#endif

  if
  :: seen == SEALED || (seen == DRAINING && other) ->
#ifndef SWAPPED
     count[w]--
#else
     skip
#endif
  :: else ->
#ifdef SWAPPED
     count[w]++;
#endif
     if
     :: seen == DRAINING -> bypassed = true
     :: else -> skip
     fi;
     atomic { assert(!acked); at_pod[w] = true };
     at_pod[w] = false;
     count[w]--
  fi;
  seen = 0; other = 0
}

proctype Worker(byte w) {
  byte done, seen;
  bool other;

  {
    do
    :: done < CONNECTS -> done++; connect(w, seen, other)
    :: done == CONNECTS -> break
    od
  } unless {
    killed[w]
  }
}

/* SIGKILL of the first worker at any point, or never: the kernel closes its connections, then the
   process is gone. nginx starts another, which may serve before the agent notices. */
proctype Killer() {
end:
  atomic {
    killed[0] = true;
#ifdef EARLY_DROP
    present[0] = false; count[0] = 0;
#else
    at_pod[0] = false;
#endif
    present[REPLACES] = true;
    run Worker(REPLACES)
  };
  atomic {
    at_pod[0] = false;
#ifdef RESET_ALL
    count[1] = 0; count[REPLACES] = 0;
#endif
    present[0] = false; count[0] = 0
  }
}

/* An entry that expires because it was not renewed: at any moment before the agent has read that it holds. */
proctype Expiry() {
end:
  atomic { !holds && entry[0] != OPEN && !expired -> expired = true; entry[0] = OPEN }
}

/* A gateway that starts. The agent sees its pod before it serves. One that starts after the ack
   fetches the entries, or gets them, before it is ready. */
proctype Joiner() {
end:
  atomic {
    if
    :: acked -> entry[1] = SEALED
    :: else -> joined = true
    fi;
    present[JOINS] = true;
    run Worker(JOINS)
  }
}

/* In flight, read process by process: the list of live processes first, and then only those. */
inline read(total, w) {
  d_step {
    w = 0;
    do
    :: w < SLOTS -> lives[w] = present[w]; w++
    :: w == SLOTS -> break
    od;
    w = 0; total = 0
  };
  do
  :: atomic {
       w < SLOTS ->
       if
       :: lives[w] -> total = total + count[w]
       :: else -> skip
       fi;
       w++;
       do
       :: w < SLOTS && !lives[w] -> w++
       :: else -> break
       od
     }
  :: atomic { w == SLOTS -> w = 0; break }
  od
}

inline put(state) {
  if
  :: entry[0] < state -> entry[0] = state
  :: else -> skip
  fi;
#ifndef TRUST_NEW
  if
  :: joined && entry[1] < state -> entry[1] = state
  :: else -> skip
  fi
#endif
}

proctype Agent() {
  byte total, w;
  bool knows;

again:
  put(DRAINING);
  do
  :: atomic { bypassed = false };
     read(total, w);
     if
     :: total == 0 && !bypassed -> break
     :: else -> skip
     fi
  od;

#ifndef NO_SEAL
  knows = joined;
  put(SEALED);
#ifndef BLIND
  atomic {
    if
    :: entry[0] == SEALED -> holds = true
    :: else -> goto again
    fi
  };
#else
  skip;
#endif
#ifndef NO_REREAD
  do
  :: read(total, w);
     if
     :: total == 0 -> break
     :: else -> skip
     fi
  od;
#endif
#ifndef TRUST_NEW
  /* a gateway that joined meanwhile needs the same steps */
  atomic {
    if
    :: joined && (!knows || entry[1] != SEALED) -> goto again
    :: else -> acked = true
    fi
  };
#else
  acked = true;
#endif
#else
  holds = true;
  acked = true;
#endif
  assert(!at_pod[0] && !at_pod[1] && !at_pod[REPLACES] && !at_pod[JOINS]);
#ifdef REACHED
  assert(false);
#endif
}

init {
  atomic {
    present[0] = true;
    run Worker(0);
#if WORKERS > 1
    present[1] = true;
    run Worker(1);
#endif
#ifdef KILL
    run Killer();
#endif
#ifdef EXPIRY
    run Expiry();
#endif
#ifdef JOIN
    run Joiner();
#endif
    run Agent()
  }
}
