import { Client, Pool } from "undici";
import { createMetadataGuard } from "../../lib/net/egress-guard.ts";
import { isMetadataUrl } from "../../lib/net/metadata-service.ts";
import { type ProxyConfig, createTunnelConnector } from "../../lib/net/http-proxy.ts";
import type { PoolStats } from "../../plugin/gateway-stats.ts";

/** To an address that the operator or a plugin's author wrote. */
export function createConnector(connectMs: number, proxy: ProxyConfig | undefined) {
  const straight = createMetadataGuard(connectMs).connect;
  return proxy ? createTunnelConnector(proxy, straight, connectMs) : straight;
}

/** Our watchdog keeps the time; as many connections as there are open streams; never two requests on one. */
const poolOptionsOf = (
  origin: string,
  connectMs: number,
  proxy: ProxyConfig | undefined,
): Client.Options => ({
  pipelining: 1,
  headersTimeout: 0,
  bodyTimeout: 0,
  // No name may lead to the cloud's metadata service but its own, which a plugin declares.
  connect: isMetadataUrl(new URL(origin))
    ? { timeout: connectMs }
    : createConnector(connectMs, proxy),
  keepAliveTimeout: 10_000,
  maxHeaderSize: 32_768,
  allowH2: false,
});

/** One pool per origin, across generations: a reload closes no connection that the next config still uses. */
export class ConnectionPools implements AsyncDisposable {
  readonly #proxy: ProxyConfig | undefined;
  readonly #pools = new Map<string, { pool: Pool; holders: number }>();

  constructor(proxy?: ProxyConfig) {
    this.#proxy = proxy;
  }

  /** The pool for an origin, held until the returned release is called; and one more connection to it, for one request. */
  acquire(
    origin: string,
    connectMs: number,
  ): { pool: Pool; openConnection: () => Client; release: () => Promise<void> } {
    const key = `${origin}\n${connectMs}`;
    let entry = this.#pools.get(key);
    if (!entry) {
      const pool = new Pool(origin, {
        ...poolOptionsOf(origin, connectMs, this.#proxy),
        connections: null,
      });
      this.#pools.set(key, (entry = { pool, holders: 0 }));
    }
    entry.holders++;
    const held = entry;
    return {
      pool: held.pool,
      openConnection: () => new Client(origin, poolOptionsOf(origin, connectMs, this.#proxy)),
      release: async () => {
        if (--held.holders > 0) return;
        this.#pools.delete(key);
        await held.pool.close();
      },
    };
  }

  /** An origin has a pool for each time that its connections may take. */
  stats(): PoolStats[] {
    return [...this.#pools].map(([key, { pool }]) => {
      const { connected, free, running, queued } = pool.stats;
      return { origin: key.slice(0, key.indexOf("\n")), connected, free, running, queued };
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const all = [...this.#pools.values()];
    this.#pools.clear();
    await Promise.all(all.map(({ pool }) => pool.destroy()));
  }
}
