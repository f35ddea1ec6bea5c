/*
 * The guarantee of the barrier, for spin: no request is at the pod when the ack is given, and none
 * reaches it afterwards. One address; a gateway with two workers, a third that takes the place of one
 * that is killed, a second gateway that joins while the drain is under way; and the agent.
 *
 * A worker:   pick any node, and read the client's body for as long as that takes; then, per connect,
 *                      (1) count up    (2) look at the entry; denied: count down, pick another
 * The agent:           (1) entry draining            (2) wait: in flight 0, no bypass since last look
 *                      (3) seal, look whether it holds   (4) read in flight again, 0: ack
 *
 * The first pick is not in it, for it proves nothing: it may be as old as it likes, and what it found
 * out about the entry is forgotten. In it: connects that find no other node (bypass), which includes a
 * retry that has tried the others; workers that are frozen at any point, also between look and
 * connect; a worker killed at any point, whose counts are left out only
 * once its connections are gone; counts that are read one after the other while workers go on; an
 * entry that expires as long as the agent has not seen, in the answer, that it holds.
 *
 * Each of these, given with -D, breaks it, and spin must find out (check.ts runs them all):
 *   SWAPPED     a worker looks first and counts afterwards: relying on what the pick saw is the same
 *   NO_SEAL     the agent acks after (2)
 *   NO_REREAD   the agent acks after (3)
 *   BLIND       (4) looks at the counts but not at whether the entry still holds
 *   RESET_ALL   counts are not kept per worker: when one dies, all are reset
 *   EARLY_DROP  a killed worker's counts are left out while its connections still stand
 *   TRUST_NEW   the agent does not ask a gateway that joined
 * And REACHED must "fail" too: it claims that the ack is never given.
 *
 * The whole of it at once is too much to search, so it is searched in parts, chosen with -D:
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

#define SLOTS    4      /* numbers of processes: 0 and 1, 2 for the one that replaces, 3 joins */
#define REPLACES 2
#define JOINS    3

byte entry[2] = OPEN;         /* the deny-list of each gateway */
byte count[SLOTS];            /* in flight, by process */
bool present[SLOTS];          /* registered, and not known to be dead */
bool at_pod[SLOTS];           /* one of its requests is at the pod */
bool killed[SLOTS];
bool bypassed, acked, holds, joined, expired;
bool lives[SLOTS];         /* the agent's: who it reads */

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
   process is gone. nginx starts another, which may serve before anybody has noticed. */
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

/* An entry that nobody renewed in time, at any moment but after the agent saw that it holds. */
proctype Expiry() {
end:
  atomic { !holds && entry[0] != OPEN && !expired -> expired = true; entry[0] = OPEN }
}

/* A gateway that starts. Its pod is seen before it serves; one that starts after the ack fetches the
   entries, or is told them, before it is ready. */
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

/* In flight, read process by process; who lives is looked up first, and only they are read. */
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
  /* a gateway that came meanwhile has to be gone through as well */
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
