import { Client, Pool, type buildConnector } from "undici";
import { createMetadataGuard, isMetadataUrl } from "../../lib/net/egress-guard.ts";
import { type ProxyConfig, createTunnelConnector } from "../../lib/net/http-proxy.ts";
import type { PoolStats } from "../../plugin/gateway-stats.ts";

/** Creates the connector for addresses that the operator or a plugin author wrote. */
export function createConnector(connectMs: number, proxy: ProxyConfig | undefined) {
  const straight = createMetadataGuard(connectMs).connect;
  return proxy ? createTunnelConnector(proxy, straight, connectMs) : straight;
}

/**
 * Pool options. Timeouts are enforced by the gateway's own timers. A pool opens as many connections
 * as there are open streams, and never sends two requests on one connection at a time.
 */
const poolOptionsOf = (
  origin: string,
  connectMs: number,
  proxy: ProxyConfig | undefined,
): Client.Options => ({
  pipelining: 1,
  headersTimeout: 0,
  bodyTimeout: 0,
  // Only the metadata service's own name may resolve to its address, and only for a plugin that
  // declares it.
  connect: isMetadataUrl(new URL(origin))
    ? { timeout: connectMs }
    : createConnector(connectMs, proxy),
  keepAliveTimeout: 10_000,
  maxHeaderSize: 32_768,
  allowH2: false,
});

/**
 * Connection pools by origin, shared by all generations. After a reload, connections that the new
 * config still uses stay open.
 */
export class ConnectionPools implements AsyncDisposable {
  readonly #proxy: ProxyConfig | undefined;
  readonly #pools = new Map<string, { pool: Pool; holders: number }>();

  constructor(proxy?: ProxyConfig) {
    this.#proxy = proxy;
  }

  /**
   * Returns the pool of an origin, which is kept until `release` is called. `openConnection` opens
   * a separate connection for one request, and `connect` opens a connection without HTTP for
   * a WebSocket.
   */
  acquire(
    origin: string,
    connectMs: number,
  ): {
    pool: Pool;
    openConnection: () => Client;
    connect: buildConnector.connector;
    release: () => Promise<void>;
  } {
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
      connect: createConnector(connectMs, this.#proxy),
      release: async () => {
        if (--held.holders > 0) return;
        this.#pools.delete(key);
        await held.pool.close();
      },
    };
  }

  /** Returns the stats per pool. An origin has a separate pool per connect timeout. */
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
