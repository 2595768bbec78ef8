// The numbers of the sockets that this process listens on, for a process that takes its place. With several workers the cluster opens them
// here and shows them to no one: so they are noted as they open.
import { channel } from "node:diagnostics_channel";
import { Server } from "node:net";
import type { BoundAddress } from "../../runtime/http/listen-targets.ts";
import { temporaryPathOf } from "../../runtime/http/unix-socket.ts";

/** Node does not document where a server has its descriptor. Where it is not there nothing can be handed on, and that is said. */
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

/** Notes what this process opens from now on. */
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
    // The cluster takes the handle away when it hears of the same.
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

  /** Nothing is taken there by this process from now on. The cluster, which closes it at its end, finds it closed. */
  close(place: BoundAddress): void {
    const fd = this.find(place);
    if (fd !== undefined) this.#handles.get(fd)?.close();
  }

  [Symbol.dispose](): void {
    this.#listening.unsubscribe(this.#onListen);
  }
}
