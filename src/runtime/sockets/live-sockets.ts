// Open WebSockets and calls as operators see them, over all processes of a gateway.
import type { Fault } from "../../model/error.ts";
import type { Privacy } from "../../model/facts.ts";

/** Properties of a connection that depend on how it is served. */
export interface SocketDescription {
  /**
   * `requests`: each message is a request. `relay`: messages pass to and from the provider's socket.
   * `call`: audio passes between the client and the provider, and the gateway observes it.
   */
  readonly type: "requests" | "relay" | "call";
  /** Model of the connection. Undefined if each message names its own, or none was named yet. */
  readonly model: string | undefined;
  /** Provider of the connection. */
  readonly provider: string | undefined;
  readonly privacy: Privacy;
}

/** An open connection. It contains nothing of its messages. */
export interface LiveSocket extends SocketDescription {
  /** ID of the handshake. It is the label `session` of each response of a relay. */
  readonly id: string;
  readonly frontend: string;
  readonly key: string;
  /** Path of the account. */
  readonly account: string | undefined;
  /** In Unix milliseconds. */
  readonly openedAt: number;
  readonly ageMs: number;
  /** Number of responses that run. */
  readonly running: number;
  readonly messagesIn: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Bytes that were sent and that the client has not received. */
  readonly bufferedBytes: number;
  /**
   * Why no messages are read from the client. `slow`: the client does not read. `provider`: the
   * provider does not read. `queue`: too many requests wait. `relay`: a response is being reserved.
   * `opening`: the provider's socket is being opened.
   */
  readonly pauseReasons: readonly string[];
  readonly isClosing: boolean;
}

/** Another process. The result is undefined if it does not respond in time. */
export interface LiveSocketSource {
  readLiveSockets(): Promise<readonly LiveSocket[] | undefined>;
}

/** Error that a client receives when an operator closes its connection. */
export const CLOSED_BY_ADMIN: Fault = {
  kind: "forbidden",
  code: "closed_by_admin",
  message: "An administrator closed this connection.",
};

/** Returns the connections of this process and of others. */
export async function readAllLiveSockets(
  own: readonly LiveSocket[],
  others: readonly LiveSocketSource[],
): Promise<readonly LiveSocket[]> {
  const lists = await Promise.all(others.map((each) => each.readLiveSockets()));
  return [own, ...lists].flatMap((some) => some ?? []);
}
