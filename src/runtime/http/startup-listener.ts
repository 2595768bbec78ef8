// Before there is anything to serve with: a gateway whose store is not there yet has its port open all the same, and says that it is not ready. A
// balancer passes it by, an orchestrator sees a process that lives, and a client is told to come again.
import type { RequestListener } from "node:http";
import type { ListenConfig } from "../../config/sections/network-config.ts";
import { retryHeaders, appendRetryHint } from "../../model/client-retry.ts";
import type { ListenerHandle } from "./listener.ts";

/** A store that opens sooner than this needs none. */
const OPEN_AFTER_MS = 1_000;

export interface StartupListener {
  /** The port is free for the one that serves. */
  close(): Promise<void>;
}

/** Opens after a moment, and does not while `ready` is sooner. A port that cannot be had is the next one's to tell of. */
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
  // Any free port would be another one than the one that serves.
  const fixed = all.filter(({ port, socket }) => port !== 0 || socket !== undefined);
  if (fixed.length === 0 || (await isReadySoon(ready))) return undefined;
  // A start that needs none does not load it before its own work.
  const [{ listen }, { toListenTarget }] = await Promise.all([
    import("./listener.ts"),
    import("./listen-targets.ts"),
  ]);
  const [first, ...also] = await Promise.all(fixed.map((each) => toListenTarget(each)));
  return listen({ ...first!, additionalTargets: also, handler: respondNotReady });
}

/** Whether it is there, or has failed, within the moment. */
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
            message: appendRetryHint("The gateway waits for its store.", RETRY_DELAY_MS),
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
