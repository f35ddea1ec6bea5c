/*
 * Knowledge, for spin: agents that see Kubernetes late, or not at all, share nothing but the entries of the gateways
 * (docs/decisions/0071, 0021 and 0072). The other files prove what an entry does. This one proves that it is the right one.
 *
 * Pod A ends, and B may follow it. At any moment B may lose its role, or its address to another pod (lost), and A's address
 * may become another pod's (reused). Each event is a revision. Two agents see the revisions in order, as late as they like,
 * and may become blind: their watch is not live, and they know that. What they send may arrive late.
 *
 * An agent:  A's address is still A's: put the entry if it is missing, or names other successors; else remove it
 *
 * The claims: an address is not barred again after its entry was removed by knowledge, and not for ever while nobody sees; an
 * entry whose hook was answered stays while its pod has the address and an agent sees; no pod is named against what
 * the agent knows, nor again after a later knowledge took it back, nor for ever.
 *
 * The rules, and the variants that break each of them, given with -D (check.ts runs them all):
 *   K1  the gateway remembers as of which revision an entry was removed, and refuses what an agent put as of an earlier one
 *         NO_NOTE         it forgets
 *   K2  it keeps successors that were named as of a later revision
 *         OLD_NAMES       the last put wins
 *   K3  a blind agent neither puts nor renews, so its entry runs out
 *         RENEWS_BLIND    it renews what it knew
 *   K4  a blind agent removes nothing
 *         BLIND_DELETES   it takes what it does not see for gone
 *   K5  a role is the set of all Services in which A ever was
 *         NOW_ROLE        only those in which A is now: a label was switched at its end
 *   K6  a successor is a pod, not an address
 *         BY_ADDRESS      it stays named while any pod is there, which came between two looks of the agent
 * And REACHED must "fail" too: it claims that no entry is ever removed by knowledge.
 */
byte rev = 1;
byte lost, reused, switched;      /* the revision of each event; 0: not yet */

bool present, named;              /* the entry of A; it names B */
byte removed_as_of, named_as_of;  /* what the gateway remembers, for longer than an agent may lag */

byte knows[2] = 1;
bool blind[2];

/* Only for the proof */
bool answered, expired, removed, taken_back;

#define seen(i, event) (event != 0 && event <= knows[i])

#ifdef BY_ADDRESS
#define fits(i) true
#else
#ifdef NOW_ROLE
#define fits(i) (!seen(i, lost) || seen(i, switched))
#else
#define fits(i) (!seen(i, lost))
#endif
#endif

#ifdef RENEWS_BLIND
#define acts(i) true
#else
#define acts(i) (!blind[i])
#endif

#ifdef BLIND_DELETES
#define misses(i) blind[i]
#else
#define misses(i) false
#endif

inline put(names, as_of) {
  if
#ifndef NO_NOTE
  :: as_of < removed_as_of -> skip
#endif
  :: else ->
     assert(!removed);
     present = true; answered = true;
     if
#ifndef OLD_NAMES
     :: as_of < named_as_of -> skip
#endif
     :: else ->
        assert(!(names && lost != 0 && lost <= as_of));
        named = names; named_as_of = as_of;
        taken_back = taken_back || (!names && lost != 0 && lost <= as_of)
     fi;
     assert(!(named && taken_back))
  fi
}

inline remove(as_of) {
  assert(!answered || expired || reused != 0);
  present = false; named = false;
  removed_as_of = (as_of > removed_as_of -> as_of : removed_as_of);
  removed = true;
#ifdef REACHED
  assert(false)
#endif
}

proctype Agent(byte i) {
  byte as_of;
  bool names;

end:
  do
  :: atomic { !blind[i] && knows[i] < rev -> knows[i]++ }
  :: atomic { !blind[i] -> blind[i] = true }
  :: atomic {
       acts(i) && !seen(i, reused) && (!present || named != fits(i)) -> names = fits(i); as_of = knows[i]
     };
     atomic { put(names, as_of); names = false; as_of = 0 }
  :: atomic { present && (acts(i) && seen(i, reused) || misses(i)) -> as_of = knows[i] };
     atomic { remove(as_of); as_of = 0 }
  od
}

proctype Kubernetes() {
  do
  :: atomic { lost == 0 -> rev++; lost = rev }
  :: atomic { switched == 0 -> rev++; switched = rev }
  :: atomic { reused == 0 -> rev++; reused = rev }
  :: break
  od
}

/* Nobody renews it */
proctype Ttl() {
end:
  do
  :: atomic { present && !acts(0) && !acts(1) -> present = false; named = false; expired = true }
  od
}

init {
  atomic {
    if
    :: lost = 1 /* B never had the role */
    :: skip
    fi;
    run Kubernetes();
    run Agent(0);
    run Agent(1);
    run Ttl()
  };

  timeout;
  assert(!(present && (reused != 0 || named && lost != 0)))
}
