// Doctor's checks of the gateway's own certificates: expiry, name, key, order, and whether the
// gateway uses them.
import { createServer } from "node:tls";
import { once } from "node:events";
import { join } from "node:path";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { type DoctorFinding, CERTIFICATE_DAYS } from "../../../src/cli/doctor/finding.ts";
import { checkCertificates } from "../../../src/cli/doctor/certificates.ts";
import { createTestFolder, runCliInProcess } from "../../kit/process/command-line.ts";
import { authority } from "../../rig/faults/certificates.ts";

const NAME = "models.example";
const ours = authority("Ours");
const DAY_MS = 86_400_000;
const utc = (days: number) =>
  `${new Date(Date.now() + days * DAY_MS).toISOString().replaceAll(/[-:T]/g, "").slice(2, 14)}Z`;

interface Files {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string;
}

async function found(
  { cert, key, ca }: Files,
  more: { readonly hosts?: readonly string[]; readonly host?: string; readonly port?: number } = {},
): Promise<readonly DoctorFinding[]> {
  await using here = await createTestFolder({ cert, key, ...(ca !== undefined && { ca }) });
  const tls = {
    cert: join(here.path, "cert"),
    key: join(here.path, "key"),
    minVersion: "TLSv1.2",
    clientCertificates:
      ca === undefined ? undefined : { ca: join(here.path, "ca"), required: true },
  };
  const { hosts = [NAME], host = "0.0.0.0", port = 0 } = more;
  const config = { listen: [{ host, port, hosts, tls }], admin: undefined };
  // Awaited here, because the folder is removed when this returns.
  return await checkCertificates(config as never, port !== 0);
}
const told = (of: readonly DoctorFinding[]) => of.map(({ id, level }) => `${id} ${level}`);
const levels = async (...of: Parameters<typeof found>) => told(await found(...of));

it("shows the names and the lifetime of a valid certificate", async () => {
  const good = ours.issue({ name: NAME });
  expect(await levels(good)).toEqual(["listen.tls/certificate ok"]);
  expect((await found(good))[0]!.message).toMatch(
    /is for models\.example, and valid for \d+ days$/,
  );
});

it("warns two weeks before the expiry; an expired or not yet valid certificate is an error", async () => {
  const until = (days: number) => found(ours.issue({ name: NAME, until: utc(days) }));
  expect(told(await until(CERTIFICATE_DAYS + 0.1))).toEqual(["listen.tls/certificate ok"]);
  expect(told(await until(CERTIFICATE_DAYS - 0.1))).toEqual(["listen.tls/ends warning"]);
  expect((await until(13.9))[0]!.message).toContain("expires in 13 days");
  expect(told(await until(0.01))).toEqual(["listen.tls/ends warning"]);
  expect(told(await until(-0.01))).toEqual(["listen.tls/ends error"]);
  const early = await found(ours.issue({ name: NAME, since: utc(0.1) }));
  expect([told(early), early[0]!.message]).toEqual([
    ["listen.tls/ends error"],
    expect.stringContaining("not valid before"),
  ]);
});

it("reports a key that does not match, with the listener's error", async () => {
  const good = ours.issue({ name: NAME });
  const other = { ...good, key: ours.issue({ name: NAME }).key };
  const [one] = await found(other);
  expect(one).toMatchObject({
    id: "listen.tls/files",
    level: "error",
    message: expect.stringMatching(/listen\.tls cannot be used: .*mismatch/),
  });
  expect(await levels({ ...good, cert: "nothing" })).toEqual(["listen.tls/files error"]);
  expect(await levels({ ...good, ca: "nothing" })).toEqual(["listen.tls/files error"]);
});

it("compares the names with those of gateway.yaml and of the address, and reports if none is known", async () => {
  const good = ours.issue({ name: NAME });
  const not = ["listen.tls/names warning"];
  expect(await levels(good, { hosts: ["other.example"] })).toEqual(not);
  expect(await levels(good, { hosts: [], host: "192.0.2.1" })).toEqual(not);
  const any = ["listen.tls/certificate ok"];
  expect(await levels(good, { hosts: [] })).toEqual(any);
  expect(await levels(good, { hosts: [], host: "127.0.0.1" })).toEqual(any);
  const star = ours.issue({ name: `*.${NAME}` });
  expect(await levels(star, { hosts: [`a.${NAME}`] })).toEqual(any);
  expect(await levels(star, { hosts: [`b.a.${NAME}`] })).toEqual(not);
});

it("checks that each certificate issued the previous one and that none has expired, including client CAs", async () => {
  const good = ours.issue({ name: NAME });
  const other = authority("Other");
  expect(await levels({ ...good, cert: good.cert + ours.root })).toEqual([
    "listen.tls/certificate ok",
  ]);
  expect(await levels({ ...good, cert: good.cert + other.root })).toEqual([
    "listen.tls/chain warning",
  ]);
  const old = ours.issue({ name: "Old", until: utc(-1) });
  const signed = await found({ ...good, ca: ours.root });
  expect(told(signed), signed[0]!.message).toEqual(["listen.tls/certificate ok"]);
  expect(await levels({ ...good, ca: ours.root + old.cert })).toEqual(["listen.tls/clients error"]);
});

it("reports whether the gateway uses the certificate in the file", async () => {
  const good = ours.issue({ name: NAME });
  const server = createServer({ ...good }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const at = { host: "127.0.0.1", port };
  expect(await levels(good, at)).toEqual(["listen.tls/certificate ok"]);
  expect(await levels(ours.issue({ name: NAME }), at)).toEqual(["listen.tls/served warning"]);
  server.close();
  await once(server, "close");
  expect(await levels(good, at)).toEqual(["listen.tls/served warning"]);
});

it("the command prints the result, also for the admin listener", async () => {
  const ended = ours.issue({ name: NAME, until: utc(-1) });
  const good = ours.issue({ name: NAME });
  await using here = await createTestFolder({
    "gateway.yaml": `listen: { host: 0.0.0.0, port: 0, tls: { cert: a.pem, key: a.key } }
admin: { port: 0, tls: { cert: b.pem, key: b.key }, tokens: { ops: { role: owner, token: "tga_0123456789abcdef0123456789abcdef" } } }
providers: { demo: { use: demo } }
`,
    "a.pem": good.cert,
    "a.key": good.key,
    "b.pem": ended.cert,
    "b.key": ended.key,
  });
  const { out, code } = await runCliInProcess([
    "doctor",
    "--json",
    "--offline",
    "-c",
    join(here.path, "gateway.yaml"),
  ]);
  const { findings } = JSON.parse(out) as { findings: readonly DoctorFinding[] };
  expect(told(findings.filter(({ id }) => id.includes(".tls/")))).toEqual([
    "listen.tls/certificate ok",
    "admin.tls/ends error",
  ]);
  expect(code).toBe(1);
});
