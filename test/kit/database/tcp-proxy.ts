// A road between a gateway and its database that can be slow, silent or cut. What is silent is late and not lost: a black hole that drops
// bytes and goes on would be a network that no protocol over TCP ever meets.
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface TcpProxy extends AsyncDisposable {
  readonly port: number;
  /** Connections now. */
  readonly open: number;
  /** Connections so far, with those that were refused. */
  readonly made: number;
  /** The address with this road's port. */
  through(url: string): string;
  /** Each way; bytes keep their order. */
  delay(ms: number): void;
  /** Nothing passes any more, until `free`. New connections are taken, and are silent too. */
  hold(): void;
  free(): void;
  /** All that is open, in the middle of whatever it was. */
  reset(): void;
  /** New connections are refused, and what is open is cut, until `mend`. */
  cut(): void;
  mend(): void;
  /** Another server answers new connections from now on; what is open is cut. */
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

/** Both ways of one connection. */
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

/** Bytes from one socket to another, in their order, when their time has come. */
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
        // A timer's shortest time is a millisecond, and most delays between a gateway and its database are shorter.
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
