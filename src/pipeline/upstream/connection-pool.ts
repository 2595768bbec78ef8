// The WebSockets over which requests are sent to one endpoint. A lane of a client, and a
// conversation that continues, keep their connection, because the provider holds the last response
// on it.
import type { ProviderMessage, ProviderSession, SocketMessage } from "../../plugin/socket.ts";
import type { SocketLane } from "../exchange/socket-lane.ts";

/** Decides which requests may use a connection. */
export interface ConnectionUse {
  /** ID of the client's key. A connection serves one key, because it holds its last response. */
  readonly key: string;
  /** Path and headers of the handshake, without the credential. */
  readonly handshake: string;
}

/** The connection that a response arrives on. */
export interface ResponseConnection {
  pause(): void;
  resume(): void;
  /** Ends the connection, because a response cannot be canceled in any other way. */
  terminate(): void;
}

/** Receives the response to one request. */
export interface MessageReceiver {
  /** Called when the request is sent. */
  start(connection: ResponseConnection): void;
  onMessage(message: ProviderMessage): void;
  /** Called if the connection is closed before the response has ended. */
  onClosed(): void;
  abort(reason: Error): void;
}

/** A connection to a provider, as the pool sees it. */
export interface PooledConnection {
  readonly use: ConnectionUse;
  readonly session: ProviderSession;
  readonly openedAt: number;
  /** Time when the last request ended. */
  idleSince: number;
  /** The lane whose requests it served last. */
  lane: SocketLane;
  readonly isIdle: boolean;
  readonly isClosed: boolean;
  /** Sends a request. The receiver gets what the provider sends from here on. */
  send(message: SocketMessage, receiver: MessageReceiver): void;
  /** Sends a ping if no ping was sent for this time. Ends a connection that does not answer. */
  ping(now: number, everyMs: number): void;
  close(): void;
}

/** Times of a connection to a provider, in milliseconds. */
export interface ConnectionTimes {
  /** Maximum time without a request. */
  readonly idleMs: number;
  /** Age from which a connection gets no further request. */
  readonly ageMs: number;
  readonly pingMs: number;
  /**
   * Time in which no connection is opened after the provider did not accept one. It doubles with
   * each further attempt that fails.
   */
  readonly suspendMs: number;
  readonly maxSuspendMs: number;
}

export const CONNECTION_TIMES: ConnectionTimes = {
  idleMs: 300_000,
  // OpenAI closes a connection after 60 minutes, whether or not a response runs.
  ageMs: 3_300_000,
  pingMs: 20_000,
  suspendMs: 5_000,
  maxSuspendMs: 300_000,
};

/** Maximum number of connections per credential. */
export const MAX_CONNECTIONS = 100;
const SWEEP_MS = 1_000;

/** A request that needs a connection. */
export interface ConnectionRequest extends ConnectionUse {
  readonly lane: SocketLane;
  /** ID of the response that the request continues. */
  readonly continues: string | undefined;
}

/** The connections of one credential. */
interface Line {
  readonly open: Set<PooledConnection>;
  /** Number of handshakes that run. */
  opening: number;
  suspendedUntil: number;
  /** Time of the next suspension. */
  suspendMs: number;
}

export class ConnectionPool {
  readonly #times: ConnectionTimes;
  readonly #now: () => number;
  readonly #lines = new Map<object, Line>();
  #sweeper: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(
    times: ConnectionTimes = CONNECTION_TIMES,
    now: () => number = () => performance.now(),
  ) {
    this.#times = times;
    this.#now = now;
  }

  /**
   * Returns an idle connection for the request. Prefers the connection that holds its conversation.
   */
  find(credential: object, request: ConnectionRequest): PooledConnection | undefined {
    const now = this.#now();
    let best: PooledConnection | undefined;
    let bestRank = 0;
    for (const one of this.#lines.get(credential)?.open ?? []) {
      const { use, openedAt } = one;
      if (!one.isIdle || use.key !== request.key || use.handshake !== request.handshake) continue;
      if (now - openedAt >= this.#times.ageMs) continue;
      const rank = rankOf(one, request);
      if (rank > bestRank) [best, bestRank] = [one, rank];
    }
    return best;
  }

  /**
   * Opens a connection. Returns undefined if the maximum is reached and no connection is idle, or
   * if the provider did not accept a connection of this credential lately.
   */
  async open(
    credential: object,
    connect: (now: number) => Promise<PooledConnection>,
  ): Promise<PooledConnection | undefined> {
    const line = this.#lineOf(credential);
    if (this.#isClosed || this.#now() < line.suspendedUntil || !this.#makeRoom(line))
      return undefined;
    line.opening++;
    try {
      const made = await connect(this.#now());
      line.suspendMs = this.#times.suspendMs;
      // The generation may have ended while the handshake ran.
      if (made.isClosed) return made;
      line.open.add(made);
      this.#sweeper ??= setInterval(() => this.sweep(), SWEEP_MS).unref();
      return made;
    } finally {
      line.opening--;
    }
  }

  /** Called when the provider did not accept a connection. */
  suspend(credential: object): void {
    const line = this.#lineOf(credential);
    const now = this.#now();
    // Handshakes that ran at the same time are one attempt.
    if (now < line.suspendedUntil) return;
    line.suspendedUntil = now + line.suspendMs;
    line.suspendMs = Math.min(line.suspendMs * 2, this.#times.maxSuspendMs);
  }

  /** Called when a connection has no request any more. */
  readonly free = (connection: PooledConnection): void => {
    connection.idleSince = this.#now();
    if (this.#isClosed) connection.close();
  };

  /** Called when a connection is closed. */
  remove(credential: object, connection: PooledConnection): void {
    this.#lines.get(credential)?.open.delete(connection);
    if (this.count === 0) this.#stopSweeping();
  }

  get count(): number {
    let sum = 0;
    for (const { open } of this.#lines.values()) sum += open.size;
    return sum;
  }

  /** Closes connections that are idle for too long, or too old. Pings the others. */
  sweep(): void {
    const now = this.#now();
    const { idleMs, ageMs, pingMs } = this.#times;
    for (const { open } of this.#lines.values())
      for (const one of open) {
        if (one.isIdle && (now - one.idleSince > idleMs || now - one.openedAt > ageMs)) one.close();
        else if (!one.isClosed) one.ping(now, pingMs);
      }
  }

  /** Closes idle connections, and every other connection when its request has ended. */
  close(): void {
    this.#isClosed = true;
    for (const { open } of this.#lines.values())
      for (const one of open) if (one.isIdle) one.close();
    this.#stopSweeping();
  }

  #lineOf(credential: object): Line {
    let line = this.#lines.get(credential);
    if (!line) {
      const { suspendMs } = this.#times;
      line = { open: new Set(), opening: 0, suspendedUntil: 0, suspendMs };
      this.#lines.set(credential, line);
    }
    return line;
  }

  /**
   * Closes an idle connection, if the maximum is reached: the one that is idle for the longest time,
   * of the key with the most connections. One key cannot close all connections of the others.
   */
  #makeRoom({ open, opening }: Line): boolean {
    if (open.size + opening < MAX_CONNECTIONS) return true;
    const counts = new Map<string, number>();
    for (const { use } of open) counts.set(use.key, (counts.get(use.key) ?? 0) + 1);
    const countOf = ({ use }: PooledConnection) => counts.get(use.key)!;
    let victim: PooledConnection | undefined;
    for (const one of open) {
      if (!one.isIdle) continue;
      const more = victim ? countOf(one) - countOf(victim) : 1;
      if (more > 0 || (more === 0 && one.idleSince < victim!.idleSince)) victim = one;
    }
    if (!victim) return false;
    open.delete(victim);
    victim.close();
    return true;
  }

  #stopSweeping(): void {
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

/** Returns how well an idle connection fits. 0: it belongs to another lane. */
function rankOf({ session, lane: own }: PooledConnection, { lane, continues }: ConnectionRequest) {
  if (continues !== undefined && session.continuable === continues) return 3;
  if (own.connection === lane.connection && own.name === lane.name) return 2;
  return own.connection.isClosed ? 1 : 0;
}
