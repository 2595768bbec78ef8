// The database as gateways reach it: connections, their queries, and faults of the network and the
// server. It uses virtual time and reproducible randomness.
import type { Chance } from "../../rig.ts";
import type { Answer, SimulatedDatabase } from "./database.ts";
import { askedBy, fatal, messagesIn, refusal, simple, WELCOME, type Asked } from "./protocol.ts";
import type { Link, Session } from "./link.ts";
import type { Later, VirtualTime } from "./virtual-time.ts";

/** Faults of one query. */
type Mishap = "lost" | "answer lost" | "late" | "slow";

interface Question {
  readonly session: Session;
  readonly asked: Asked;
  readonly since: number;
  readonly answerAfterMs: number;
  readonly answerLost: boolean;
  /** Locks are not waited for without a limit. */
  limited: boolean;
}

/** The store's own connection settings. */
const LOCK_MS = 700;
const IDLE_IN_TRANSACTION_MS = 2_000;
const GATE = /^SELECT \w+\.apply_(?:batch_1|leased_batch_1)\(/;
/**
 * The driver's first query. It also makes the server's process allocate memory, which is irrelevant
 * in a simulation.
 */
const GREETING = /^SELECT pg_is_in_recovery\(\)/;
const GREETED = simple("SELECT 'false' AS there, 0 AS length");
const HEARTBEAT = /\bheartbeat_1\(/;
const GIVES = /\breturn_lease_1\(/;
/** A batch that uses leases. */
const SLICED = /\bapply_leased_batch_1\(/;
const WRITES = /apply_|(?:take|return)_lease_1\(|INSERT|UPDATE|DELETE|^COMMIT/;

export class Server {
  readonly time: VirtualTime;
  readonly #database: SimulatedDatabase;
  readonly #chance: Chance;
  readonly #sessions = new Set<Session>();
  #waiting: Question[] = [];
  /** New connections that a silent server has not greeted. */
  #guests: Session[] = [];
  #owner: Session | undefined;
  /** A batch that has looked at its meters and has not locked them: another gateway's may come first. */
  #looking: Question | undefined;
  #idle: Later | undefined;
  /** How often a question meets a mishap. */
  mishaps = 0;
  isDown = false;
  isSilent = false;
  isFull = false;
  /** When it last started to respond after a pause. */
  upSince = -Infinity;
  /** Gateways that have returned leases themselves. */
  readonly gaveBack = new Set<string>();
  /** Receives violations. */
  wrong: (what: string) => void = () => {};
  counts: Record<string, number> = {};

  constructor(time: VirtualTime, database: SimulatedDatabase, chance: Chance) {
    this.time = time;
    this.#database = database;
    this.#chance = chance;
  }

  get isBusy(): boolean {
    return this.#owner !== undefined;
  }

  #count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  connect(session: Session): void {
    this.#toServer(session, () => {
      if (this.isDown) return this.#reset(session, "ECONNREFUSED");
      this.#sessions.add(session);
      this.#toClient(session, 0, () => void session.socket.emit("connect"));
    });
  }

  send(session: Session, bytes: Buffer): void {
    this.#toServer(session, () => {
      if (!session.serves) return;
      if (!session.welcome) {
        session.welcome = true;
        if (this.isSilent) return void this.#guests.push(session);
        return this.#toClient(session, 0, () => void session.socket.emit("data", WELCOME));
      }
      session.rest = Buffer.concat([session.rest, bytes]);
      const messages = messagesIn(session.rest);
      for (let next = messages.next(); ; next = messages.next()) {
        if (next.done) {
          session.rest = session.rest.subarray(next.value);
          break;
        }
        const { type } = next.value;
        if (type === "X") return this.#end(session);
        session.group.push(next.value);
        if (type === "S" || type === "Q") {
          this.#arrive(session, askedBy(session.group));
          session.group = [];
        }
      }
    });
  }

  /** The client has closed its end, or has ended. */
  leave(session: Session): void {
    if (!session.open) return;
    session.open = false;
    this.#toServer(session, () => this.#end(session));
  }

  /**
   * Closes all connections, and accepts none for this time. `then`: effect on its data in the
   * meantime.
   */
  restart(downMs: number, then: () => void = () => {}): void {
    this.isDown = true;
    this.#waiting = [];
    this.#looking = undefined;
    for (const session of this.#sessions) {
      this.#end(session);
      this.#reset(session, "ECONNRESET");
    }
    then();
    this.time.later(downMs, () => this.#back(() => (this.isDown = false)));
  }

  /** It accepts queries and answers none for this time. Then it answers all of them. */
  silence(ms: number): void {
    this.isSilent = true;
    this.time.later(ms, () => this.#back(() => (this.isSilent = false)));
  }

  /** The network of one gateway works again: delayed data is delivered. */
  mend(link: Link): void {
    link.cut = false;
    for (const deliver of link.held.splice(0)) deliver();
  }

  #back(now: () => void): void {
    now();
    this.upSince = this.time.now;
    for (const session of this.#guests.splice(0))
      this.#toClient(session, 0, () => void session.socket.emit("data", WELCOME));
    this.#next();
  }

  /** It was killed: data that it sent still arrives, and the server sees its connections end. */
  killed(link: Link): void {
    for (const session of this.#sessions)
      if (session.socket.link === link && session.open) this.leave(session);
  }

  #toServer(session: Session, deliver: () => void): void {
    const at = Math.max(session.arrives, this.time.now + 0.1 + this.#chance() * 2);
    session.arrives = at;
    const { link } = session.socket;
    const arrive = () => (link.cut ? void link.held.push(arrive) : deliver());
    this.time.later(at - this.time.now, arrive);
  }

  #toClient(session: Session, afterMs: number, deliver: () => void): void {
    const at = Math.max(session.returns, this.time.now + afterMs + 0.1 + this.#chance() * 2);
    session.returns = at;
    const { link } = session.socket;
    const arrive = () => {
      if (link.cut) link.held.push(arrive);
      else if (session.open) this.time.later(0, deliver, link.owner);
    };
    this.time.later(at - this.time.now, arrive);
  }

  #reset(session: Session, code: string): void {
    this.#toClient(session, 0, () => {
      session.open = false;
      session.socket.closed(Object.assign(new Error(code), { code }));
    });
  }

  #end(session: Session): void {
    session.serves = false;
    this.#sessions.delete(session);
    this.#waiting = this.#waiting.filter((question) => question.session !== session);
    if (this.#looking?.session === session) this.#looking = undefined;
    if (this.#owner !== session) return;
    this.#run(simple("ROLLBACK"));
    this.#own(undefined);
    this.#next();
  }

  #own(session: Session | undefined): void {
    this.#idle?.cancel();
    this.#idle = undefined;
    this.#owner = session;
  }

  #mishap(): Mishap | undefined {
    if (this.mishaps === 0 || !this.#chance.often(this.mishaps)) return undefined;
    return this.#chance.one(["lost", "answer lost", "late", "slow"]);
  }

  #arrive(session: Session, asked: Asked): void {
    if (!session.serves) return;
    const mishap = this.#mishap();
    if (mishap) this.#count(mishap);
    const question: Question = {
      session,
      asked,
      since: this.time.now,
      answerAfterMs: mishap === "slow" ? this.#chance() * 4_000 : 0,
      answerLost: mishap === "answer lost",
      limited: false,
    };
    if (mishap === "lost") {
      this.#end(session);
      return this.#reset(session, "ECONNRESET");
    }
    // The client gets a connection error, and the server executes the query some time later.
    if (mishap === "late") {
      session.open = false;
      session.socket.closed(Object.assign(new Error("ECONNRESET"), { code: "ECONNRESET" }));
      session.notBefore = this.time.now + this.#chance() * 3_000;
      this.time.later(session.notBefore + 10 - this.time.now, () => this.#end(session));
    }
    // The server does not serve its processes in the order of the clients' queries.
    if (GATE.test(asked.text) && this.#chance.often(0.4))
      session.notBefore = Math.max(session.notBefore, this.time.now + this.#chance() * 4);
    const wait = session.notBefore - this.time.now;
    if (wait <= 0) this.#put(question);
    else this.time.later(wait, () => this.#put(question));
  }

  #put(question: Question): void {
    if (this.isDown || !question.session.serves) return;
    this.#waiting.push(question);
    this.#next();
  }

  #next(): void {
    while (!this.isSilent && !this.isDown) {
      const owner = this.#owner;
      const place = this.#waiting.findIndex(
        ({ session }) => (!owner || session === owner) && session !== this.#looking?.session,
      );
      if (place >= 0) {
        this.#serve(this.#waiting.splice(place, 1)[0]!);
        continue;
      }
      if (owner && this.#waiting.length > 0) this.#others();
      return;
    }
  }

  /** It is served when another gateway's batch has come, or after a moment. */
  #look(question: Question): void {
    this.#looking = question;
    this.time.later(5, () => {
      if (this.#looking !== question) return;
      this.#looking = undefined;
      if (this.isSilent || this.isDown || this.#owner) this.#waiting.unshift(question);
      else this.#done(question, this.#run(question.asked.bytes));
      this.#next();
    });
  }

  /** Batches that wait while another connection is in a transaction. */
  #others(): void {
    for (const question of this.#waiting) {
      if (question.limited || !GATE.test(question.asked.text)) continue;
      question.limited = true;
      this.time.later(question.since + LOCK_MS - this.time.now, () => {
        const place = this.#waiting.indexOf(question);
        if (place < 0 || !this.#owner) return;
        this.#waiting.splice(place, 1);
        this.#count("lock timeout");
        this.#answer(question, refusal("55P03"));
      });
    }
  }

  #serve(question: Question): void {
    const { asked, session } = question;
    if (this.isFull && WRITES.test(asked.text) && !HEARTBEAT.test(asked.text)) {
      this.#count("full");
      return this.#done(
        question,
        this.time.inServer(() => this.#database.refuse("53100")),
      );
    }
    if (SLICED.test(asked.text)) this.#count("sliced");
    if (GIVES.test(asked.text)) this.gaveBack.add(String(asked.values?.[0]));
    if (HEARTBEAT.test(asked.text) && asked.values?.[1] === "true") return this.#beat(question);
    if (GATE.test(asked.text) && !this.#owner) {
      const looking = this.#looking;
      if (looking && looking.session.socket.link !== session.socket.link)
        return this.#race(looking, question);
      if (!looking && this.#chance.often(0.6)) return this.#look(question);
    }
    this.#done(question, this.#run(GREETING.test(asked.text) ? GREETED : asked.bytes));
  }

  /** `other` runs where `looking` has looked and not locked. */
  #race(looking: Question, other: Question): void {
    this.#looking = undefined;
    const { answer, said } = this.time.inServer(() =>
      this.#database.race(looking.asked.bytes, other.asked),
    );
    this.#done(looking, answer);
    if (said === undefined) return void this.#waiting.unshift(other);
    this.#count("race");
    this.#done(
      other,
      this.time.inServer(() => this.#database.told(said)),
    );
  }

  /** A gateway whose own lease expired expires no other. */
  #beat(question: Question): void {
    const epoch = question.asked.values![0] as string;
    const silent = this.time.inServer(() => this.#database.isSilent(epoch));
    const before = silent ? this.#database.dead() : 0;
    this.#done(question, this.#run(question.asked.bytes));
    if (silent && this.#database.dead() > before)
      this.wrong(`node ${epoch} was silent for a lease and takes others for dead`);
  }

  #run(bytes: Uint8Array): Answer {
    return this.time.inServer(() => this.#database.run(bytes));
  }

  #done(question: Question, answer: Answer): void {
    const { session } = question;
    for (const locks of answer.locks)
      if (locks.join() !== locks.toSorted().join())
        this.wrong(`meters are locked out of order: ${locks.join(" ")}`);
    if (answer.status === "I") this.#own(undefined);
    else {
      this.#own(session);
      this.#idle = this.time.later(IDLE_IN_TRANSACTION_MS, () => {
        this.#count("idle in transaction");
        this.#toClient(session, 0, () => void session.socket.emit("data", fatal("25P03")));
        this.#end(session);
        this.#reset(session, "ECONNRESET");
      });
    }
    this.#answer(question, answer.bytes);
  }

  #answer({ session, answerAfterMs, answerLost }: Question, bytes: Buffer): void {
    if (answerLost) {
      this.#end(session);
      return this.#reset(session, "ECONNRESET");
    }
    this.#toClient(session, answerAfterMs, () => void session.socket.emit("data", bytes));
  }
}
