// Tracks the file descriptors of listening sockets, for hot restart. With several workers, Node's
// cluster module opens these sockets in this process and does not expose them. They are therefore
// recorded when they open.
import { channel } from "node:diagnostics_channel";
import { Server } from "node:net";
import type { BoundAddress } from "../../runtime/http/listen-targets.ts";
import { temporaryPathOf } from "../../runtime/http/unix-socket.ts";
import type { BroadcastName, WorkerCommands } from "../../runtime/workers/worker-protocol.ts";

/**
 * Node does not document where a server stores its descriptor. If it is missing, the handoff fails
 * with an error.
 */
interface WithHandle {
  readonly _handle?: Handle | null;
}
interface Handle {
  readonly fd?: number;
  close(): void;
}

export function descriptorOf(server: Server): number | undefined {
  const fd = (server as WithHandle)._handle?.fd;
  return fd !== undefined && fd >= 0 ? fd : undefined;
}

const addressKeyOf = (at: ReturnType<Server["address"]>): string =>
  typeof at === "string" ? at : `${at?.address} ${at?.port}`;

/** Records sockets that this process opens from now on. */
export class DescriptorRegistry implements Disposable {
  readonly #byAddress = new Map<string, number>();
  readonly #handles = new Map<number, Handle>();
  readonly #listening = channel("tracing:net.server.listen:asyncStart");

  constructor() {
    this.#listening.subscribe(this.#onListen);
  }

  readonly #onListen = (message: unknown): void => {
    const { server } = message as { server: unknown };
    if (!(server instanceof Server)) return;
    // Runs before the cluster's own listener for this event, which removes the handle.
    server.prependOnceListener("listening", () => {
      const fd = descriptorOf(server);
      if (fd === undefined) return;
      this.#byAddress.set(addressKeyOf(server.address()), fd);
      this.#handles.set(fd, (server as WithHandle)._handle!);
    });
  };

  find(place: BoundAddress): number | undefined {
    if ("fd" in place) return place.fd;
    return this.#byAddress.get(
      "socket" in place ? temporaryPathOf(place.socket) : `${place.host} ${place.port}`,
    );
  }

  /**
   * Stops accepting connections at an address. The cluster later finds the handle already closed.
   */
  close(place: BoundAddress): void {
    const fd = this.find(place);
    if (fd !== undefined) this.#handles.get(fd)?.close();
  }

  [Symbol.dispose](): void {
    this.#listening.unsubscribe(this.#onListen);
  }
}

// Messages between a gateway and the process that replaces it, in addition to those between a
// worker and its primary.

/** Environment variable with the process id of the gateway to replace. */
export const REPLACES_PID_VARIABLE = "TOLLGATE_REPLACES_PID";

/** State that the old process hands over after it has released it. */
export interface HandedOverState {
  /**
   * Instance id of the old process in the store. Undefined if both processes have the store open.
   */
  readonly instanceId: string | undefined;
  /** Unix milliseconds. All open calls of the old process began at or after this time. */
  readonly oldestOpenCallAt: number;
  /** Unix sockets that the old process opened itself. The last process removes them. */
  readonly ownedSocketPaths: readonly string[];
}

/** Calls from the new process to the old process. */
export type NewProcessCalls = {
  /** Requests the store. All other parts of the new process have been tested before. */
  takeStore(wanted: {
    readonly stateDir: string;
    readonly version: string;
  }): Promise<HandedOverState>;
  /**
   * Reports that the new process has opened the store. The old process then uses the store through
   * the new process.
   */
  storeOpened(): void;
  /** Reports that the new process serves clients. The old process then shuts down. */
  serving(): void;
  /** Returns the number of open requests in the old process. */
  inFlight(): number;
} & Pick<WorkerCommands, BroadcastName>;
