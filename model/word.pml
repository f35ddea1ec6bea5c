/*
 * The worker's word, for spin: a seal leaves no worker with a place that has no other choice.
 * barrier.pml proves that no request reaches the pod after the ack, whenever the agent seals. This
 * file proves that the agent seals at a moment when no request is refused because of the seal.
 *
 * Two addresses, A and B; a deny-list of one gateway (another gateway has a list and workers of its
 * own, and the agent asks them in the same way); WORKERS workers, each with its own place: the
 * set of addresses that it chooses from, and no two need be equal. Two agents.
 *
 * A worker:  (1) read the generation of the deny-list   (2) read the list   (3) report, in one step with
 *                a read of its own configuration: which of its places have no free choice left
 *                ("sole"), and which other choices there are ("others")
 * An agent:  (1) entry draining   (2) read each worker's word, and judge it
 *            (3) all good: ask for the seal, and name the judged words
 * The gateway:  (4) read each worker's word again   (5) all as judged: seal
 *
 * The rules, and the variants that break them, given with -D (check.ts runs them all, and spin must
 * find the refused request):
 *   W1  a word belongs to one generation and one configuration; a change of either voids it
 *         ANY_GENERATION  a word from before the entry counts for the entry
 *         LIST_FIRST      the generation is read after the list
 *         STALE_WORD      a word stays when the configuration changes
 *         LATE_VOID       a word is void only a step after the configuration has changed
 *         NO_MARK         a word that took several steps is reported although the configuration changed
 *         KEPT_BY_ID      a worker that starts inherits the word of the one it replaces
 *   W2  a worker that has not spoken has not agreed: a frozen, a starting or a late one
 *         SILENCE         silent workers are left out
 *   W3  each worker speaks for itself
 *         ONE_FOR_ALL     the word of one worker counts for all
 *   W4  no place is sole, and one of the other choices is not known to be bad
 *         SOLE_IGNORED    the agent seals in spite of a sole place
 *         OTHERS_IGNORED  the agent does not check the others
 *         UNCHECKED       the gateway seals without a check: the agent's check is older
 *         ANY_OTHERS      the gateway checks only for sole places, not whether the other choices are
 *                         still those that the agent judged
 *   W5  another choice has the same standing: a node of a lower priority is none, as it takes no request before
 *         ANY_STANDING    a standby counts as another choice
 * And REACHED must "fail" too: it claims that nothing is ever sealed.
 *
 * No rule can keep the owner from removing the last other choice in the microseconds between (4) and
 * (5). For a client this equals a removal a moment later, after the seal. So a refusal counts against
 * us only if the worker has had the same configuration since the gateway received the seal.
 *
 * The model includes: workers that stop at any point (a frozen one does not move), CHANGES
 * configurations that change at any point, one RESTART of a worker with a configuration that may be
 * old, an entry that is removed and put AGAIN, a node that is BAD (its pod does not serve),
 * B as a STANDBY, and TWIN agents on one address.
 *
 * The search shows that the generation need not be the current one. A word counts from the generation
 * in which its entry was added (born), so entries of other pods do not delay a seal.
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef CHANGES
#define CHANGES 1
#endif

#define A 0
#define B 1
#define bit(x) (1 << x)

#define OPEN     0
#define DRAINING 1
#define SEALED   2

#define NOTHING 255

byte entry[2] = OPEN;
byte gen;                  /* of the deny-list: up with every change */
byte born[2];              /* the generation in which the entry was added */
bool bad[2];               /* no pod serves there, and agents know it */

byte place[WORKERS];       /* the choices of the worker, a bit for each address; 0: no place */
byte mark[WORKERS];        /* names this configuration; up with every change */
byte said[WORKERS];        /* its word: the generation, */
byte sole[WORKERS];        /* a bit for each address whose place has no other free choice, */
byte others[WORKERS];      /* the free choices that it named */

byte since[WORKERS];       /* only for the proof: a bit for each agent whose seal was received
                              since the worker has its configuration */
bool sealed;

/* The addresses of these that have the standing of x. For a standby, every other node has it. */
#ifdef STANDBY
#define peers(these, x) (x == A -> (these) & ~bit(B) : (these))
#else
#define peers(these, x) (these)
#endif
#ifdef ANY_STANDING
#define choices(these, x) (these)
#else
#define choices(these, x) peers(these, x)
#endif

/* A request to this place now finds only sealed nodes, bad ones and those of a lower standing, but could have used
   this address before the seal. */
#define serves(w, x)  ((place[w] & bit(x)) && entry[x] != SEALED && !bad[x])
#define taken(w, x)   ((place[w] & bit(x)) && entry[x] == SEALED && !bad[x])
#define refused(w, x) (taken(w, x) && !serves(w, A) && !(serves(w, B) && peers(bit(B), x)))

#define counts(w, x)  (said[w] != NOTHING && said[w] >= born[x])

inline void_word(w) { said[w] = NOTHING; sole[w] = 0; others[w] = 0 }

proctype Worker(byte w) {
  byte g, list, free, m, was;

end:
  do
  :: said[w] != gen ->
#ifdef LIST_FIRST
     d_step { m = mark[w]; was = place[w]; list = (entry[A] != OPEN) + 2 * (entry[B] != OPEN) };
     g = gen;
#else
     d_step { m = mark[w]; was = place[w]; g = gen };
     list = (entry[A] != OPEN) + 2 * (entry[B] != OPEN);
#endif
     d_step {
       free = was & (3 - list);
       if
#ifndef NO_MARK
       :: mark[w] != m -> skip
       :: else ->
#else
       :: true ->
#endif
          said[w] = g;
          others[w] = free;
          sole[w] = was & list & ((choices(free, A) == 0 -> bit(A) : 0) | (choices(free, B) == 0 -> bit(B) : 0))
       fi;
       g = 0; list = 0; free = 0; m = 0; was = 0
     }
  od
}

inline another(w) {
  if
  :: place[w] != 0 -> place[w] = 0
  :: place[w] != 1 -> place[w] = 1
  :: place[w] != 2 -> place[w] = 2
  :: place[w] != 3 -> place[w] = 3
  fi;
  mark[w]++; since[w] = 0
}

/* The worker applies its owner's write in one step, between any two of its own steps. */
proctype Owner() {
  byte left = CHANGES, w;

end:
  do
  :: left > 0 ->
     atomic {
       left--;
       if
       :: w = 0
#if WORKERS > 1
       :: w = 1
#endif
       fi;
       another(w);
#ifndef STALE_WORD
#ifndef LATE_VOID
       void_word(w)
#endif
#endif
     };
#ifdef LATE_VOID
     atomic { void_word(w) };
#endif
     w = 0
  od
}

/* Killed, and replaced by another one with the configuration that it read at its start. A word
   that the old one was about to report is lost. */
proctype Restart() {
end:
  atomic {
    another(0);
#ifndef KEPT_BY_ID
    void_word(0)
#endif
  }
}

#ifdef ANY_GENERATION
#define spoken(w, x) (said[w] != NOTHING)
#else
#define spoken(w, x) counts(w, x)
#endif

#ifdef SOLE_IGNORED
#define free_of_sole(w, x) true
#else
#define free_of_sole(w, x) ((sole[w] & bit(x)) == 0)
#endif

/* Only the other address can be another choice here. A worker without a place needs none. */
#ifdef OTHERS_IGNORED
#define another_serves(w, x) true
#else
#define another_serves(w, x) ((others[w] & bit(1 - x)) == 0 || !bad[1 - x])
#endif

#define agrees(w, x) (spoken(w, x) && free_of_sole(w, x) && another_serves(w, x))

#ifdef ONE_FOR_ALL
#define whose(w) 0
#else
#define whose(w) w
#endif

#ifdef SILENCE
#define fine(w, x) (agrees(w, x) || !spoken(w, x))
#else
#define fine(w, x) agrees(w, x)
#endif

/* The agent's judgement of this worker, in a bit: whether it names the other address. */
#define names(w, x) ((others[w] & bit(1 - x)) != 0)

#ifdef ANY_OTHERS
#define as_judged(w, x, judged) true
#else
#define as_judged(w, x, judged) (names(w, x) == ((judged & bit(w)) != 0))
#endif

#ifdef SILENCE
#define holds(w, x, judged) (!spoken(w, x) || (free_of_sole(w, x) && as_judged(w, x, judged)))
#else
#define holds(w, x, judged) (spoken(w, x) && free_of_sole(w, x) && as_judged(w, x, judged))
#endif

inline taken_up(me) {
  since[0] = since[0] | bit(me);
#if WORKERS > 1
  since[1] = since[1] | bit(me)
#endif
}

inline refused_again(me) {
  since[0] = since[0] & ~bit(me);
#if WORKERS > 1
  since[1] = since[1] & ~bit(me)
#endif
}

proctype Agent(byte me; byte x; byte again) {
  byte w, judged;

put:
  atomic {
    if
    :: entry[x] == OPEN -> gen++; entry[x] = DRAINING; born[x] = gen
    :: else -> skip
    fi
  };
  if
  :: again > 0 -> atomic { again--; gen++; entry[x] = OPEN; goto put }
  :: true
  fi;

judge:
  w = 0;
  judged = 0;
end: /* for ever, if the workers never agree: the deadline ends the drain and reports that */
  do
  :: w == WORKERS -> break
  :: atomic { w < WORKERS && fine(whose(w), x) -> judged = judged | (names(whose(w), x) << w); w++ }
  od;

  atomic { w = 0; taken_up(me) };
#ifndef UNCHECKED
  do
  :: w == WORKERS -> break
  :: atomic { w < WORKERS && holds(whose(w), x, judged) -> w++ }
  :: atomic { w < WORKERS && !holds(whose(w), x, judged) -> refused_again(me); goto judge }
  od;
#endif

  /* a request that comes now */
  atomic {
    if
    :: entry[x] == DRAINING -> entry[x] = SEALED; gen++; sealed = true
    :: else -> skip
    fi;
    assert(!(refused(0, x) && (since[0] & bit(me))));
#if WORKERS > 1
    assert(!(refused(1, x) && (since[1] & bit(me))));
#endif
#ifdef REACHED
    assert(!sealed);
#endif
  }
}

init {
  atomic {
    byte w = 0;
    do
    :: w < WORKERS ->
       said[w] = NOTHING;
       if
       :: place[w] = 0
       :: place[w] = 1
       :: place[w] = 2
       :: place[w] = 3
       fi;
       w++
    :: else -> break
    od;
#ifdef BAD
    bad[B] = true;
#endif
    run Worker(0);
#if WORKERS > 1
    run Worker(1);
#endif
#if CHANGES > 0
    run Owner();
#endif
#ifdef RESTART
    run Restart();
#endif
    run Agent(0, A, 0);
#ifdef TWIN
    run Agent(1, A, 0);
#else
#ifdef AGAIN
    run Agent(1, B, 1);
#else
    run Agent(1, B, 0);
#endif
#endif
  }
}
