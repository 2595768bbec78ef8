import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { builtin } from "../../../../plugins/index.ts";
import { createGateway, createLoader, createLog, SecretMask } from "../../../../src/index.ts";

it("an embedded gateway has one process, or a separate program for workers", async () => {
  const dir = await mkdtemp(join(tmpdir(), "tollgate-embedded-"));
  await writeFile(join(dir, "gateway.yaml"), "workers: 2\n");
  const mask = new SecretMask();
  const started = await createGateway({
    configFile: join(dir, "gateway.yaml"),
    env: {},
    log: createLog({ level: "error", pretty: false, mask }),
    mask,
    version: "test",
    loadPlugin: createLoader({ builtin, hostModules: {} }),
  });
  await rm(dir, { recursive: true });
  expect(started).toMatchObject({
    problems: [{ id: "config/workers", severity: "error", line: 1, column: 10 }],
  });
});
