/*
 * Successors, for spin: a pod that takes over from an ending one gets the same guarantee when it ends itself.
 * barrier.pml proves the order of operations for one address, word.pml when one address may be sealed. This file
 * proves that both still hold when an entry names other addresses (docs/decisions/0042).
 *
 * Three pods. A ends from the start, and every place lists A only. B is Ready, and ends at any moment. C gets Ready at
 * any moment, and stays. An agent with a process for each ending pod. A gateway with WORKERS workers, each with a
 * place of its own. Another gateway has a list and workers of its own, and the agent asks them in the same way.
 *
 * An agent, per ending pod:  (1) find the successors: Ready, not ending   (2) put the entry: draining
 *                            (3) judge each worker's word, ask for the seal; the gateway compares and seals
 *                            (4) in flight 0: ack    At any moment: name other successors (a change of the entry)
 * A request:  (1) pick: free nodes, and successors without an entry in place of denied ones; after a failure free nodes
 *                 alone, then those successors; then draining ones, listed or named
 *             (2) count up    (3) read the deny-list again; denied: count down, back to (1)    (4) send
 *
 * The claims: no request is sent to a pod after its ack; no request is refused while a Ready pod is listed or named,
 * nor because of a seal; and each ending pod gets its ack in the end.
 *
 * The rules, and the variants that break each of them, given with -D (check.ts runs them all):
 *   S1  a request is counted at the successor's address before the deny-list is read again
 *         NOT_COUNTED     only nodes of the place are counted
 *         NO_REREAD       the deny-list is not read again for a successor
 *   S2  a successor that ends serves while it is draining, and leads to its own successors
 *         UNCHAINED       a worker does not follow the chain
 *         ENDING_UNUSED   a worker does not choose a successor that is draining
 *   S3  the word about a successor counts the places that it took over
 *         OWN_PLACES      it counts only places that list the address
 *   S4  a seal rests on the successors that were judged
 *         UNTAGGED        the tag does not cover the successors
 *         NO_CHANGE       a word counts that was given before the successors changed
 *   S5  an entry gets successors as they become Ready, and keeps the last ones while no pod may follow
 *         NAMED_ONCE      it keeps those of its first put for ever: a pod waits without end
 *         DROPPED         it names none while none is Ready
 *   S6  a successor gets the share of a denied node, though another node is free
 *         UNSHARED        a worker chooses successors only if no node of the place is left
 *   S7  a node that health checks reject is no choice while a successor or a draining pod may serve
 *         UNHEALTHY       only nodes that have failed this request make way
 * And REACHED must "fail" too: it claims that the successor never gets its ack.
 *
 * The model includes: configurations that change at any point, with any of the pods that were Ready; entries that are
 * put one after the other, from older knowledge of the agent. With LATER, C gets Ready only after B ends. With TWIN, C
 * is never Ready, B does not end, and a second agent that does not know this names C as the successor of A once. With
 * CHECKS, each place has one more node at first, which is dead, and which health checks reject.
 *
 * The model has no cycle: every run ends. So a pod without an ack at the end of a run has waited in vain.
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef CHANGES
#define CHANGES 1
#endif
#ifndef REQUESTS
#define REQUESTS 1
#endif

#define A 0
#define B 1
#define C 2
#define DEAD 3
#define bit(x) (1 << x)

#ifdef CHECKS
#define down bit(DEAD)
#else
#define down 0
#endif

#define LAST (WORKERS - 1)

#define NOTHING 255
#define NOWHERE 16

/* Kubernetes: a bit for each pod */
byte ready = 3, ending = 1, acked;
#define up (ready & ~ending)

/* The deny-list */
byte draining, sealed;     /* a bit for each address */
#define denied (draining | sealed)
byte next[3];              /* the successors of each entry */
byte gen, since[3];        /* its generation, and that of the last change of each entry */
byte inflight[4];

/* The workers */
byte place[WORKERS];
byte said[WORKERS];        /* the generation of its word */
byte about[WORKERS];       /* its word: a bit for each address that is in its place, or took it over, */
byte others[WORKERS];      /* and the free choices there */
byte mark[WORKERS];        /* up with every change of its configuration */
bool excused[WORKERS];     /* the owner changed the place after a seal */

/* The addresses that the entries of these lead to in one step */
#define after(these) \
  (((these) & 1 -> next[A] : 0) | ((these) & 2 -> next[B] : 0) | ((these) & 4 -> next[C] : 0))

/* The same in as many steps as there are pods */
inline follow(these, found) {
  found = after(these);
  found = found | after(found);
  found = found | after(found)
}

proctype Word(byte w) {
  byte g, m, was, found;

end:
  do
  :: said[w] != gen ->
     d_step { m = mark[w]; was = place[w]; g = gen };
     d_step {
       if
       :: mark[w] != m -> skip
       :: else ->
          said[w] = g;
          follow(was, found);
#ifdef OWN_PLACES
          about[w] = was;
#else
          about[w] = was | found;
#endif
          others[w] = (was | found) & ~denied
       fi;
       g = 0; m = 0; was = 0; found = 0
     }
  od
}

inline leave() { atomic { inflight[x] = inflight[x] - counted; x = 0 } }

/* One request, of any worker. A pod that is not Ready fails it, and then it tries another one. */
proctype Request() {
  byte w, x, tried, from, found;
  bool soft, counted;

  if
  :: w = 0
  :: w = LAST
  fi;

again:
  atomic {
    soft = false;
#ifdef UNHEALTHY
    from = place[w] & ~denied & ~tried;
#else
    from = place[w] & ~denied & ~tried & ~down;
#endif
#ifdef UNCHAINED
    found = after(place[w]);
#else
    follow(place[w], found);
#endif
    if
#ifdef UNSHARED
    :: from == 0 ->
#else
    :: from == 0 || !tried ->
#endif
       from = from | (found & ~denied & ~tried)
    :: else -> skip
    fi;
    assert(tried || !(found & ~denied & ~place[w]) || (from & ~place[w]));
    if
    :: from == 0 ->
       soft = true;
#ifdef ENDING_UNUSED
       found = 0;
#endif
       from = (place[w] | found) & draining & ~tried
    :: else -> skip
    fi;
    assert(!(from & down));
    if
    :: from == 0 -> soft = false; from = place[w] & down & ~tried
    :: else -> skip
    fi;
    if
    :: from == 0 ->
       /* refused */
       follow(place[w], found);
       assert(!((place[w] | found) & up));
       assert(excused[w]);
       goto over
    :: from & bit(A) -> x = A
    :: from & bit(B) -> x = B
    :: from & bit(C) -> x = C
    :: from & down -> x = DEAD
    fi;
    from = 0; found = 0
  };

  atomic {
#ifdef NOT_COUNTED
    counted = (place[w] & bit(x)) != 0;
#else
    counted = true;
#endif
    inflight[x] = inflight[x] + counted
  };

  atomic {
    if
#ifdef NO_REREAD
    :: !(place[w] & bit(x)) -> skip
#else
    :: false
#endif
    :: else ->
       if
       :: (sealed & bit(x)) || ((draining & bit(x)) && !soft) -> leave(); goto again
       :: else -> skip
       fi
    fi
  };

  atomic {
    assert(!(acked & bit(x)));
    if
    :: !(ready & bit(x)) -> tried = tried | bit(x); leave(); goto again
    :: else -> skip
    fi
  };
  leave();

over:
  atomic { w = 0; x = 0; tried = 0; from = 0; found = 0; soft = false; counted = false }
}

#define spoken(w, x)   (said[w] != NOTHING && said[w] >= since[x])
#define choices(w, x)  ((about[w] & bit(x)) -> others[w] : NOWHERE)
#define agrees(w, x)   (spoken(w, x) && (choices(w, x) & (up | NOWHERE)))

#ifdef UNTAGGED
#define same(w, x, judged) (spoken(w, x) && choices(w, x) != 0)
#else
#define same(w, x, judged) (spoken(w, x) && choices(w, x) == judged)
#endif

/* A put names the successors that the agent found some time before */
#ifdef DROPPED
#define renames(x) (next[x] != up)
#else
#define renames(x) (next[x] != up && up != 0)
#endif

inline put(x, names) {
  if
  :: next[x] != names || !(denied & bit(x)) ->
     gen++;
#ifdef NO_CHANGE
     if
     :: !(denied & bit(x)) -> since[x] = gen
     :: else -> skip
     fi;
#else
     since[x] = gen;
#endif
     next[x] = names
  :: else -> skip
  fi;
  if
  :: !(sealed & bit(x)) -> draining = draining | bit(x)
  :: else -> skip
  fi
}

/* The drain of one pod, in the agent */
proctype Drain(byte x) {
  byte names, first, second;

  (ending & bit(x));
  names = up;
  atomic { put(x, names); names = 0 };

  do
  :: d_step {
       agrees(0, x) && agrees(LAST, x) -> first = choices(0, x); second = choices(LAST, x)
     };
     atomic {
       if
       :: same(0, x, first) && same(LAST, x, second) ->
          draining = draining & ~bit(x); sealed = sealed | bit(x); gen++; since[x] = gen;
          first = 0; second = 0;
          break
       :: else -> first = 0; second = 0
       fi
     }
#ifndef NAMED_ONCE
  :: d_step { renames(x) -> names = up };
     atomic { put(x, names); names = 0 }
#endif
  od;

end:
  do
  :: atomic { !(acked & bit(x)) && inflight[x] == 0 -> acked = acked | bit(x) }
#ifndef NAMED_ONCE
  :: d_step { renames(x) -> names = up };
     atomic { put(x, names); names = 0 }
#endif
  od
}

/* A worker applies its owner's write, and takes its word back in the same step. */
proctype Owner() {
  byte left = CHANGES, w, to;

end:
  do
  :: left > 0 ->
     atomic {
       left--;
       if
       :: w = 0
       :: w = LAST
       fi;
       to = 1;
       do
       :: to < 7 -> to++
       :: !(to & ~ready) -> break
       od;
       place[w] = to;
       mark[w]++;
       said[w] = NOTHING; about[w] = 0; others[w] = 0;
       excused[w] = sealed != 0;
       w = 0; to = 0
     }
  od
}

proctype Kubernetes() {
#ifndef TWIN
#ifdef LATER
  ending = ending | bit(B);
  ready = ready | bit(C)
#else
  if
  :: ending = ending | bit(B); ready = ready | bit(C)
  :: ready = ready | bit(C); ending = ending | bit(B)
  fi
#endif
#else
end:
  atomic { (draining & bit(A)) && !(sealed & bit(A)) -> put(A, bit(C)) }
#endif
}

init {
  byte w = 0;
  atomic {
    do
    :: w < WORKERS -> said[w] = NOTHING; place[w] = bit(A) | down; w++
    :: else -> break
    od;
    run Word(0);
#if WORKERS > 1
    run Word(1);
#endif
    run Request();
#if REQUESTS > 1
    run Request();
#endif
#if CHANGES > 0
    run Owner();
#endif
    run Kubernetes();
    run Drain(A);
#ifndef TWIN
    run Drain(B)
#endif
  };

  timeout;
#ifdef REACHED
  assert(!(acked & bit(B)))
#else
  assert((ending & ~acked) == 0)
#endif
}
