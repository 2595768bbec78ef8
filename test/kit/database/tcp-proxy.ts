// A proxy between a gateway and its database that can be slow, silent, or cut. Silent data is
// delayed and not lost: no TCP protocol ever sees a connection that drops bytes and continues.
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface TcpProxy extends AsyncDisposable {
  readonly port: number;
  /** Connections now. */
  readonly open: number;
  /** Number of connections so far, including rejected ones. */
  readonly made: number;
  /** The URL with the port of this proxy. */
  through(url: string): string;
  /** Delay in each direction. Bytes keep their order. */
  delay(ms: number): void;
  /** Blocks all data until `free`. New connections are accepted, and are silent too. */
  hold(): void;
  free(): void;
  /** Closes all open connections, whatever they are doing. */
  reset(): void;
  /** Rejects new connections and closes open ones until `mend`. */
  cut(): void;
  mend(): void;
  /** Sends new connections to another server and closes open ones. */
  lead(port: number): void;
}

export async function startTcpProxy({
  host = "127.0.0.1",
  port: target,
}: {
  host?: string;
  port: number;
}): Promise<TcpProxy> {
  let leads = target;
  const pairs = new Set<Pair>();
  const road: Road = { delayMs: 0, held: false };
  let away = false;
  let made = 0;
  const server = createServer({ noDelay: true }, (client) => {
    made++;
    if (away) return void client.resetAndDestroy();
    const pair = new Pair(client, connect({ host, port: leads, noDelay: true }), road);
    pairs.add(pair);
    pair.ended = () => pairs.delete(pair);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const reset = () => {
    for (const pair of pairs) pair.reset();
  };
  return {
    port,
    get open() {
      return pairs.size;
    },
    get made() {
      return made;
    },
    through(url) {
      const way = new URL(url);
      way.hostname = "127.0.0.1";
      way.port = `${port}`;
      return way.href;
    },
    delay: (ms) => void (road.delayMs = ms),
    hold: () => void (road.held = true),
    free() {
      road.held = false;
      for (const pair of pairs) pair.flow();
    },
    reset,
    cut() {
      away = true;
      reset();
    },
    mend: () => void (away = false),
    lead(port) {
      leads = port;
      reset();
    },
    async [Symbol.asyncDispose]() {
      reset();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Road {
  delayMs: number;
  held: boolean;
}

/** Both directions of one connection. */
class Pair {
  ended = () => {};
  readonly #sockets: readonly [Socket, Socket];
  readonly #ways: readonly [Way, Way];

  constructor(client: Socket, server: Socket, road: Road) {
    this.#sockets = [client, server];
    this.#ways = [new Way(client, server, road), new Way(server, client, road)];
    for (const socket of this.#sockets)
      socket
        .on("error", () => {})
        .once("close", () => {
          this.reset();
          this.ended();
        });
  }

  flow(): void {
    for (const way of this.#ways) way.flow();
  }

  reset(): void {
    for (const socket of this.#sockets) if (!socket.destroyed) socket.resetAndDestroy();
  }
}

/** Forwards bytes from one socket to another in order, after their delay. */
class Way {
  readonly #waiting: { readonly due: number; readonly bytes: Buffer | undefined }[] = [];
  readonly #road: Road;
  readonly #to: Socket;
  #timer: NodeJS.Timeout | undefined;
  #soon: NodeJS.Immediate | undefined;

  constructor(from: Socket, to: Socket, road: Road) {
    this.#road = road;
    this.#to = to;
    const take = (bytes?: Buffer) => {
      this.#waiting.push({ due: performance.now() + road.delayMs, bytes });
      this.flow();
    };
    from.on("data", take).once("end", () => take());
  }

  flow(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#soon);
    const now = performance.now();
    while (!this.#road.held && this.#waiting.length > 0) {
      const { due, bytes } = this.#waiting[0]!;
      if (due > now) {
        // The shortest timer is 1 ms, and most delays between a gateway and its database are
        // shorter.
        if (due - now < 1) this.#soon = setImmediate(() => this.flow());
        else this.#timer = setTimeout(() => this.flow(), due - now);
        return;
      }
      this.#waiting.shift();
      if (bytes) this.#to.write(bytes);
      else this.#to.end();
    }
  }
}
