import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { contextOf, renewing, secured } from "../../../src/gateway/http/tls.ts";
import type { Log } from "../../../src/lib/log.ts";
import { folder } from "../../kit/command-line.ts";
import { quiet, until } from "../../kit/waits.ts";
import { authority } from "../../rig/faults/certificates.ts";

test("a certificate that was replaced after it was read, and before its files were looked at, is taken", async () => {
  await using dir = await folder();
  const tls = {
    cert: join(dir.path, "cert.pem"),
    key: join(dir.path, "key.pem"),
    minVersion: "TLSv1.2" as const,
  };
  const ours = authority("ours");
  const issued = () => {
    const one = ours.issue({ name: "gw.example" });
    writeFileSync(tls.cert, one.cert);
    writeFileSync(tls.key, one.key);
  };
  const said: string[] = [];
  const log = { info: (_: unknown, text: string) => said.push(text) } as unknown as Log;
  const follow = async (meanwhile: () => void) => {
    const server = secured(await contextOf(tls as never, "listen.tls"), undefined, () => {});
    meanwhile();
    renewing(server, tls as never, { key: "listen.tls", log });
    return server;
  };
  issued();
  const same = await follow(() => {});
  await quiet(150);
  expect(said).toEqual([]);
  same.emit("close");
  const other = await follow(issued);
  await until(() => said.length === 1);
  expect(said).toEqual(["another certificate is used from now on"]);
  other.emit("close");
});
