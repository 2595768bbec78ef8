import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  loadTlsSettings,
  watchCertificate,
  createTlsServer,
} from "../../../../src/runtime/http/tls.ts";
import type { Log } from "../../../../src/lib/log/log.ts";
import { createTestFolder } from "../../../kit/process/command-line.ts";
import { until } from "../../../kit/wait.ts";
import { authority } from "../../../rig/faults/certificates.ts";

test("a certificate that was replaced between its read and its first check is used", async () => {
  await using dir = await createTestFolder();
  const ours = authority("ours");
  const filesOf = (name: string) => ({
    cert: join(dir.path, `${name}-cert.pem`),
    key: join(dir.path, `${name}-key.pem`),
    minVersion: "TLSv1.2" as const,
  });
  const issue = (tls: ReturnType<typeof filesOf>) => {
    const one = ours.issue({ name: "gw.example" });
    writeFileSync(tls.cert, one.cert);
    writeFileSync(tls.key, one.key);
  };
  const said: string[] = [];
  const log = { info: (_: unknown, text: string) => said.push(text) } as unknown as Log;
  const follow = async (name: string, meanwhile: typeof issue) => {
    const tls = filesOf(name);
    issue(tls);
    const server = createTlsServer(await loadTlsSettings(tls as never, "listen.tls"), () => {});
    meanwhile(tls);
    watchCertificate(server, tls as never, { key: "listen.tls", log });
    return server;
  };
  // Its files are checked first, without a finding.
  const same = await follow("same", () => {});
  const other = await follow("other", issue);
  await until(() => said.length > 0);
  same.emit("close");
  expect(said).toEqual(["certificate reloaded"]);
  other.emit("close");
});
