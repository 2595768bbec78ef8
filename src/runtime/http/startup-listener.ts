// Opens the port while the store is not available yet, and reports that the gateway is not ready.
// Load balancers skip the gateway, orchestrators see a live process, and clients receive a retry
// time.
import type { RequestListener } from "node:http";
import type { ListenConfig } from "../../config/sections/network-config.ts";
import { retryHeaders, appendRetryHint } from "../../model/client-retry.ts";
import type { ListenerHandle } from "./listener.ts";

/**
 * Delay before the port is opened, in milliseconds. A store that opens sooner needs no startup
 * listener.
 */
const OPEN_AFTER_MS = 1_000;

export interface StartupListener {
  /** Closes the port, so that the serving listener can open it. */
  close(): Promise<void>;
}

/**
 * Opens the port after a delay, unless `ready` settles first. If the port cannot be opened, the
 * serving listener reports it later.
 */
export function createStartupListener(
  places: readonly ListenConfig[],
  ready: Promise<unknown>,
): StartupListener {
  const opened = openWhenLate(places, ready).catch(() => undefined);
  return {
    async close() {
      const listening = await opened;
      await listening?.close(0);
    },
  };
}

async function openWhenLate(
  all: readonly ListenConfig[],
  ready: Promise<unknown>,
): Promise<ListenerHandle | undefined> {
  // Port `0` would select a different port than the serving listener.
  const fixed = all.filter(({ port, socket }) => port !== 0 || socket !== undefined);
  if (fixed.length === 0 || (await isReadySoon(ready))) return undefined;
  // Loaded on demand, so that a fast start does not wait for these modules.
  const [{ listen }, { toListenTarget }] = await Promise.all([
    import("./listener.ts"),
    import("./listen-targets.ts"),
  ]);
  const [first, ...also] = await Promise.all(fixed.map((each) => toListenTarget(each)));
  return listen({ ...first!, additionalTargets: also, handler: respondNotReady });
}

/** Whether `ready` settles, with a result or an error, within the delay. */
async function isReadySoon(ready: Promise<unknown>): Promise<boolean> {
  const settled = ready.then(
    () => true,
    () => true,
  );
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), OPEN_AFTER_MS);
  try {
    return await Promise.race([settled, promise]);
  } finally {
    clearTimeout(timer);
  }
}

const RETRY_DELAY_MS = 1_000;
const LIVENESS_PATHS = ["/healthz", "/health"];

const respondNotReady: RequestListener = (req, res) => {
  const path = (req.url ?? "/").split("?", 1)[0]!;
  const lives = LIVENESS_PATHS.includes(path);
  const body = lives
    ? { status: "ok" }
    : path === "/readyz"
      ? { status: "starting" }
      : {
          type: "error",
          error: {
            type: "server_error",
            code: "starting",
            message: appendRetryHint("The gateway is waiting for its store.", RETRY_DELAY_MS),
            param: null,
          },
        };
  const text = JSON.stringify(body);
  res.writeHead(lives ? 200 : 503, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    ...(!lives && retryHeaders(RETRY_DELAY_MS)),
    connection: "close",
  });
  res.end(req.method === "HEAD" ? undefined : text);
};
