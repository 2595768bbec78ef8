// Handles connections that were on their way to a worker that ended. Node's cluster module waits
// forever for the worker to acknowledge such a connection, and so does the client. A child with a
// pending handle also never emits "disconnect", so everything that waits for it hangs. This module
// repairs both. The acknowledgment precedes any read, so no data is lost if another worker receives
// the connection.
import type { ChildProcess } from "node:child_process";

/**
 * Marks internal messages of the cluster module. They are undocumented, so messages in another
 * format are forwarded unchanged.
 */
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

/**
 * Returns a function with the number of connections on their way.
 * @param hasOtherWorkers Whether another worker accepts connections. If none does, the connection
 *   is closed.
 */
export function reassignPendingConnections(
  child: ChildProcess,
  hasOtherWorkers: () => boolean,
): () => number {
  /** Pending connections. There is at most one per port. */
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
  // Runs after the cluster module's own handler, which sends nothing more to this worker.
  child.once("disconnect", () => {
    isDisconnected = true;
    const orphaned = pending;
    pending = [];
    for (const { seq, connection } of orphaned)
      // Same message as from a worker that is about to end.
      if (hasOtherWorkers())
        child.emit("internalMessage", { cmd: CLUSTER_COMMAND, ack: seq, accepted: false });
      else connection.close();
  });
  // The child has ended, and everything that it sent was read.
  child.once("close", () => {
    if (!isDisconnected) child.emit("disconnect");
  });
  return () => pending.length;
}
