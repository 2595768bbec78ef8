// A worker that ends with a connection on its way to it. Node's cluster waits for the worker's word on that connection for ever, and so
// does the client; and a child with something in its hands never tells that its channel is closed, so whatever waits for that waits
// too. Both are mended here. The word is said before anything is read, so nothing is lost where another worker gets the connection.
import type { ChildProcess } from "node:child_process";

/** Marks what the cluster says to its workers. That is no documented part of Node: what looks otherwise passes as it did. */
const CLUSTER_COMMAND = "NODE_CLUSTER";

interface ClusterMessage {
  readonly cmd?: string;
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
}

interface PendingConnection {
  readonly seq: number;
  readonly connection: { close(): void };
}

/** `others`: whether another worker takes connections. Where none does, the client hears an end. What comes back: how many are on their way. */
export function reassignPendingConnections(
  child: ChildProcess,
  hasOtherWorkers: () => boolean,
): () => number {
  /** One at a time for each port. */
  let pending: readonly PendingConnection[] = [];
  let isDisconnected = false;
  const send = child.send.bind(child) as (...args: unknown[]) => boolean;
  child.send = ((
    message: ClusterMessage,
    connection?: PendingConnection["connection"],
    ...more: unknown[]
  ) => {
    const { cmd, act, seq } = message;
    if (connection && cmd === CLUSTER_COMMAND && act === "newconn" && seq !== undefined)
      pending = [...pending, { seq, connection }];
    return send(message, connection, ...more);
  }) as ChildProcess["send"];
  child.on("internalMessage", ({ cmd, ack }: ClusterMessage) => {
    if (cmd === CLUSTER_COMMAND && ack !== undefined)
      pending = pending.filter(({ seq }) => seq !== ack);
  });
  // After the cluster's own: it hands this worker nothing any more.
  child.once("disconnect", () => {
    isDisconnected = true;
    const orphaned = pending;
    pending = [];
    for (const { seq, connection } of orphaned)
      // As a worker says it that is about to end.
      if (hasOtherWorkers())
        child.emit("internalMessage", { cmd: CLUSTER_COMMAND, ack: seq, accepted: false });
      else connection.close();
  });
  // Ended, and all that it had sent has been read.
  child.once("close", () => {
    if (!isDisconnected) child.emit("disconnect");
  });
  return () => pending.length;
}
