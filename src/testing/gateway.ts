// Starts a complete gateway in this process, on a loopback port, with the plugins of a test.
// Plugins behave in the same way as in production. The gateway is imported on demand, because it is
// most of the program's code.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { GatewayOptions } from "../server/gateway-options.ts";
import type { Log } from "../lib/log/log.ts";
import { SecretMask } from "../lib/log/secret-mask.ts";
import {
  defineMiddleware,
  defineStore,
  type Definition,
  type PluginKind,
} from "../plugin/define.ts";
import type { StoreCommand } from "../plugin/store/store.ts";
import type { LogLine } from "./context.ts";

/** Options of the gateway that a test starts. */
export interface TestGatewayOptions {
  /**
   * Plugins of the test, by the name that `use:` refers to in the YAML. Built-in plugins can be
   * used too.
   */
  readonly plugins?: Readonly<Record<string, Definition>>;
  /**
   * Content of gateway.yaml: `frontends:`, `providers:`, `models:`, and more. Without
   * `middleware:`, the middleware `door` accepts every client. Without `store:`, the store
   * `journal` records all commands in `storeCommands`.
   */
  readonly yaml: string;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * A running gateway. Disposing of it (`await using`) stops it immediately, including open requests,
 * and deletes its files.
 */
export interface TestGateway extends AsyncDisposable {
  readonly url: string;
  /** URL of the admin listener. Empty if the YAML has no `admin:`. */
  readonly adminUrl: string;
  /**
   * State directory of the gateway, which contains the control socket. It is deleted when the
   * gateway ends.
   */
  readonly stateDir: string;
  readonly logs: readonly LogLine[];
  /** All commands that the ledger received, in order. */
  readonly storeCommands: readonly StoreCommand[];
}

/** Starts a gateway. Throws with all problems if the gateway rejects its config. */
export async function startTestGateway(of: TestGatewayOptions): Promise<TestGateway> {
  const { createGateway } = await import("../server/gateway.ts");
  const folder = mkdtempSync(join(tmpdir(), "tollgate-kit-"));
  const file = join(folder, "gateway.yaml");
  const own = [
    ...(/^middleware:/m.test(of.yaml) ? [] : ["middleware: [door]"]),
    ...(/^store:/m.test(of.yaml) ? [] : ["store: journal"]),
  ];
  writeFileSync(
    file,
    ["listen: { host: 127.0.0.1, port: 0 }", "state_dir: ./state", ...own, of.yaml, ""].join("\n"),
  );
  const logs: LogLine[] = [];
  const ledger: StoreCommand[] = [];
  const plugins: Readonly<Record<string, Definition>> = {
    door: allowAllMiddleware,
    journal: createRecordingStore(ledger),
    ...of.plugins,
  };
  const started = await createGateway({
    configFile: file,
    env: of.env ?? {},
    log: createTestLog(logs),
    mask: new SecretMask(),
    version: "0.0.0",
    watchesConfig: false,
    loadPlugin: (use, kind) => findPlugin(plugins, use, kind),
  });
  if ("problems" in started) {
    rmSync(folder, { recursive: true, force: true });
    throw new Error(
      started.problems
        .map(({ path, message, hint }) => `${path}: ${message}${hint ? ` (${hint})` : ""}`)
        .join("\n"),
    );
  }
  return {
    url: started.url,
    adminUrl: started.adminUrl ?? "",
    stateDir: started.stateDir,
    logs,
    storeCommands: ledger,
    async [Symbol.asyncDispose]() {
      await started.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** As in Tollgate itself, one name can refer to one plugin of each kind. */
async function findPlugin(
  plugins: Readonly<Record<string, Definition>>,
  use: string,
  kind: PluginKind,
): ReturnType<GatewayOptions["loadPlugin"]> {
  const own = Object.hasOwn(plugins, use) ? plugins[use]! : undefined;
  if (own?.["~tollgate"] === kind) return { definition: own, from: "test" };
  const { builtin } = await import("../../plugins/index.ts");
  const ours: Readonly<Record<string, () => Promise<unknown>>> = builtin[kind];
  if (Object.hasOwn(ours, use)) {
    const { default: definition } = (await ours[use]!()) as { default: Definition };
    return { definition, from: "built-in", isBuiltIn: true };
  }
  const message = `unknown ${kind} "${use}": define it in the test or use one that comes with Tollgate`;
  return own ? { definition: own, from: "test" } : { problem: { id: "plugin/not-found", message } };
}

const allowAllMiddleware = defineMiddleware({
  api: 1,
  name: "door",
  summary: "Admit every client",
  sends: "nowhere",
  setup: () => ({ admit: (x) => x.identify({ id: "tester" }) }),
});

/** Creates a store that accepts every command and records it. */
const createRecordingStore = (rows: StoreCommand[]): Definition =>
  defineStore({
    api: 1,
    name: "journal",
    summary: "Record all writes",
    setup: () => ({
      open: async () => ({ epoch: 1, recovered: 0 }),
      async apply(batch) {
        rows.push(...batch);
        return batch.map(() => ({ ok: true }));
      },
      findKey: async () => undefined,
      // A key that no test uses. Without any key, the gateway would create one at the first start.
      listKeys: async () => ({ items: [{ id: "tester", digest: "0".repeat(64), created: 0 }] }),
      listEntries: async () => ({ items: [] }),
      sumEntries: async () => [],
    }),
  });

function createTestLog(logs: LogLine[]): Log {
  const say = (level: LogLine["level"]) => (fields: LogLine["fields"], message: string) =>
    void logs.push({ level, fields, message });
  const log: Log = {
    debug: say("debug"),
    info: say("info"),
    warn: say("warn"),
    error: say("error"),
    child: () => log,
    setLevel() {},
    addSecrets() {},
    flush() {},
  };
  return log;
}
