// A whole gateway on a loopback port, from a gateway.yaml written in the test.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { builtin } from "../../plugins/index.ts";
import { createGateway } from "../../src/gateway/gateway.ts";
import { createLoader } from "../../src/loader/load.ts";
import { digest, mint } from "../../src/lib/key.ts";
import type { Log } from "../../src/lib/log.ts";
import { Mask } from "../../src/lib/mask.ts";

export interface House extends AsyncDisposable {
  readonly url: string;
  /** A key that the gateway knows. */
  readonly key: string;
  readonly logged: readonly { level: string; fields: Record<string, unknown>; message: string }[];
}

/** `yaml` stands below listen, state, store and auth, which are the same for every test. */
export async function gateway(yaml: string): Promise<House> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-gateway-"));
  const { secret } = mint();
  writeFileSync(
    join(folder, "gateway.yaml"),
    `listen: { host: 127.0.0.1, port: 0 }
state_dir: ${JSON.stringify(join(folder, "state"))}
store: { use: memory }
middleware:
  - use: auth
    with: { keys: [{ id: tester, digest: ${digest(secret)} }] }
${yaml}`,
  );
  const logged: { level: string; fields: Record<string, unknown>; message: string }[] = [];
  const say = (level: string) => (fields: Readonly<Record<string, unknown>>, message: string) =>
    void logged.push({ level, fields, message });
  const log: Log = {
    debug: say("debug"),
    info: say("info"),
    warn: say("warn"),
    error: say("error"),
    child: () => log,
    level() {},
    secrets() {},
    flush() {},
  };
  const started = await createGateway({
    file: join(folder, "gateway.yaml"),
    env: {},
    log,
    mask: new Mask(),
    version: "0.0.0",
    load: createLoader({ builtin, host: {} }),
  });
  if ("problems" in started) {
    rmSync(folder, { recursive: true });
    throw new Error(started.problems.map((p) => `${p.path}: ${p.message}`).join("\n"));
  }
  return {
    url: started.url,
    key: secret,
    logged,
    async [Symbol.asyncDispose]() {
      await started.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
