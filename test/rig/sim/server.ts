// The database as gateways reach it: connections, what each has asked, and what can go wrong on the way and in the server. All of it goes by virtual
// time, and by chance that can be repeated.
import { EventEmitter } from "node:events";
import type { Chance } from "../rig.ts";
import type { Answer, SimulatedDatabase } from "./database.ts";
import {
  askedBy,
  fatal,
  messagesIn,
  refusal,
  simple,
  WELCOME,
  type Asked,
  type Message,
} from "./protocol.ts";
import type { Later, Process, VirtualTime } from "./time.ts";

/** What happens to one question on its way. */
type Mishap = "lost" | "answer lost" | "late" | "slow";

/** A gateway's network: cut, everything is delivered late. */
export class Link {
  readonly owner: Process;
  cut = false;
  /** Deliveries that wait for the network. */
  readonly held: (() => void)[] = [];

  constructor(owner: Process) {
    this.owner = owner;
  }
}

/** The driver's end of a connection. */
export class Socket extends EventEmitter {
  readonly server: Server;
  readonly link: Link;
  writable = true;
  readonly session: Session;

  constructor(server: Server, link: Link) {
    super();
    this.server = server;
    this.link = link;
    this.session = new Session(this);
  }

  connect(): this {
    this.server.connect(this.session);
    return this;
  }

  write(bytes: Buffer, done?: () => void): boolean {
    this.server.send(this.session, Buffer.from(bytes));
    done?.();
    return true;
  }

  end(): this {
    this.writable = false;
    this.server.leave(this.session);
    this.closed();
    return this;
  }

  destroy(error?: Error): this {
    this.writable = false;
    this.server.leave(this.session);
    this.closed(error);
    return this;
  }

  closed(error?: Error): void {
    this.writable = false;
    this.server.time.later(
      0,
      () => {
        if (error) this.emit("error", error);
        this.emit("close");
      },
      this.link.owner,
    );
  }

  setNoDelay = (): this => this;
  setKeepAlive = (): this => this;
  ref = (): this => this;
  unref = (): this => this;
  cork(): void {}
  uncork(): void {}
}

class Session {
  readonly socket: Socket;
  welcome = false;
  /** The client's end is open. */
  open = true;
  /** The server's end is open. */
  serves = true;
  rest: Buffer = Buffer.alloc(0);
  group: Message[] = [];
  arrives = 0;
  returns = 0;
  /** The server takes nothing of it before this moment. */
  notBefore = 0;
  constructor(socket: Socket) {
    this.socket = socket;
  }
}

interface Question {
  readonly session: Session;
  readonly asked: Asked;
  readonly since: number;
  readonly answerAfterMs: number;
  readonly answerLost: boolean;
  /** It does not wait for locks for ever. */
  limited: boolean;
}

/** As the store's own settings of a connection. */
const LOCK_MS = 700;
const IDLE_IN_TRANSACTION_MS = 2_000;
const GATE = /^SELECT \w+\.apply_(?:1|sliced_1)\(/;
const WRITES = /apply_|slice_1\(|INSERT|UPDATE|DELETE|^COMMIT/;

export class Server {
  readonly time: VirtualTime;
  readonly #database: SimulatedDatabase;
  readonly #chance: Chance;
  readonly #sessions = new Set<Session>();
  #waiting: Question[] = [];
  /** New connections that a silent server has not greeted. */
  #guests: Session[] = [];
  #owner: Session | undefined;
  #idle: Later | undefined;
  /** How often a question meets a mishap. */
  mishaps = 0;
  isDown = false;
  isSilent = false;
  isFull = false;
  /** When it last began to answer after it had not. */
  upSince = -Infinity;
  readonly log: string[] = [];
  /** Hears of locks, in the order in which one statement took them. */
  locked: (locks: readonly string[]) => void = () => {};
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

  /** The client has closed its end, or is gone. */
  leave(session: Session): void {
    if (!session.open) return;
    session.open = false;
    this.#toServer(session, () => this.#end(session));
  }

  /** All connections break; for so long there is no new one. `then`: what happens to its data meanwhile. */
  restart(downMs: number, then: () => void = () => {}): void {
    this.isDown = true;
    this.#waiting = [];
    for (const session of this.#sessions) {
      this.#end(session);
      this.#reset(session, "ECONNRESET");
    }
    then();
    this.time.later(downMs, () => this.#back(() => (this.isDown = false)));
  }

  /** It takes questions and answers none for so long; then it answers all of them. */
  silence(ms: number): void {
    this.isSilent = true;
    this.time.later(ms, () => this.#back(() => (this.isSilent = false)));
  }

  /** The network of one gateway works again: what waited is delivered. */
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

  /** It was killed: what it has sent still arrives, and the server sees its connections end. */
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
    // The client is told that the connection broke; the server does what it was asked some time later.
    if (mishap === "late") {
      session.open = false;
      session.socket.closed(Object.assign(new Error("ECONNRESET"), { code: "ECONNRESET" }));
      session.notBefore = this.time.now + this.#chance() * 3_000;
      this.time.later(session.notBefore + 10 - this.time.now, () => this.#end(session));
    }
    // Processes of the server are not served in the order in which their clients ask.
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
      const place = owner ? this.#waiting.findIndex(({ session }) => session === owner) : 0;
      const [question] = place < 0 ? [] : this.#waiting.splice(place, 1);
      if (question) {
        this.#serve(question);
        continue;
      }
      if (owner && this.#waiting.length > 0) this.#others();
      return;
    }
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
    if (this.isFull && WRITES.test(asked.text) && !/beat_1/.test(asked.text)) {
      this.#count("full");
      const answer = this.time.inServer(() => this.#database.refuse("53100"));
      return this.#done(question, answer);
    }
    const racer = GATE.test(asked.text) && !this.#owner ? this.#racer(session) : undefined;
    if (!racer) return this.#done(question, this.#run(asked.bytes));
    const { answer, said } = this.time.inServer(() =>
      this.#database.race(asked.bytes, racer.asked),
    );
    this.#done(question, answer);
    if (said === undefined) return;
    this.#count("race");
    this.#waiting.splice(this.#waiting.indexOf(racer), 1);
    this.#done(
      racer,
      this.time.inServer(() => this.#database.told(said)),
    );
  }

  /** Another gateway's batch that waits. */
  #racer(session: Session): Question | undefined {
    const other = this.#waiting.find(
      (question, i) =>
        GATE.test(question.asked.text) &&
        question.session.socket.link !== session.socket.link &&
        !this.#waiting.slice(0, i).some((before) => before.session === question.session),
    );
    return other && this.#chance.often(0.7) ? other : undefined;
  }

  #run(bytes: Uint8Array): Answer {
    return this.time.inServer(() => this.#database.run(bytes));
  }

  #done(question: Question, answer: Answer): void {
    const { session } = question;
    for (const locks of answer.locks) this.locked(locks);
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
