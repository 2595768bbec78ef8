// A worker that ends with a connection on its way to it. Node's cluster waits for the worker's word on that connection for ever, and so
// does the client; and a child with something in its hands never tells that its channel is closed, so whatever waits for that waits
// too. Both are mended here. The word is said before anything is read, so nothing is lost where another worker gets the connection.
import type { ChildProcess } from "node:child_process";

/** Marks what the cluster says to its workers. That is no documented part of Node: what looks otherwise passes as it did. */
const OWN = "NODE_CLUSTER";

interface OwnMessage {
  readonly cmd?: string;
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
}

interface Handed {
  readonly seq: number;
  readonly connection: { close(): void };
}

/** `others`: whether another worker takes connections. Where none does, the client hears an end. What comes back: how many are on their way. */
export function handAgain(child: ChildProcess, others: () => boolean): () => number {
  /** One at a time for each port. */
  let handed: readonly Handed[] = [];
  let told = false;
  const send = child.send.bind(child) as (...args: unknown[]) => boolean;
  child.send = ((message: OwnMessage, connection?: Handed["connection"], ...more: unknown[]) => {
    const { cmd, act, seq } = message;
    if (connection && cmd === OWN && act === "newconn" && seq !== undefined)
      handed = [...handed, { seq, connection }];
    return send(message, connection, ...more);
  }) as ChildProcess["send"];
  child.on("internalMessage", ({ cmd, ack }: OwnMessage) => {
    if (cmd === OWN && ack !== undefined) handed = handed.filter(({ seq }) => seq !== ack);
  });
  // After the cluster's own: it hands this worker nothing any more.
  child.once("disconnect", () => {
    told = true;
    const left = handed;
    handed = [];
    for (const { seq, connection } of left)
      // As a worker says it that is about to end.
      if (others()) child.emit("internalMessage", { cmd: OWN, ack: seq, accepted: false });
      else connection.close();
  });
  // Ended, and all that it had sent has been read.
  child.once("close", () => {
    if (!told) child.emit("disconnect");
  });
  return () => handed.length;
}
