// A session lists the commands that it may use: exactly those that are not rejected for its role or
// account.
import { afterAll, beforeAll, expect, it } from "vitest";
import { ROLES } from "../../../src/config/sections/admin-config.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";

let gateway: InProcessGateway;
let admin: string;

beforeAll(async () => {
  gateway = await startInProcess({
    yaml: `admin: { port: 0 }
frontends: [chat-completions, messages]
middleware: [auth, usage]
observers: [console]
accounts: { web: {} }
providers: { demo: { use: demo } }
`,
  });
  admin = ((await gateway.ask("status")) as { adminUrl: string }).adminUrl;
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

const page = () => ({
  "content-type": "application/json",
  "x-tollgate-console": "1",
  origin: admin,
});

async function signedIn(role: string, account: string | undefined) {
  const name = `${role}-${account ?? "all"}`;
  const { secret } = (await gateway.ask("admins.create", { name, role, account })) as never;
  const answer = await fetch(`${admin}/admin/v1/session`, {
    method: "POST",
    headers: page(),
    body: JSON.stringify({ token: secret }),
  });
  const cookie = answer.headers.get("set-cookie")!.split(";")[0]!;
  const ask = async (path: string, body: object) => {
    const res = await fetch(admin + path, {
      method: "POST",
      headers: { ...page(), cookie },
      body: JSON.stringify(body),
    });
    return (await res.json().catch(() => ({}))) as any;
  };
  return { self: (await answer.json()) as { commands: string[] }, ask, cookie };
}

const EVERY = ROLES.flatMap((role) =>
  [undefined, "web"].map((account) => [role, account ?? "the whole gateway", account] as const),
);

it.each(EVERY)("%s of %s", async (role, _, account) => {
  const { self, ask, cookie } = await signedIn(role, account);
  const all = Object.keys((await ownerCommands()).commands);
  const refused: string[] = [];
  for (const name of all) {
    const { error } = await ask(`/admin/v1/${name}`, { "no-such-member": 1 });
    if (error?.code === "role_too_low" || error?.code === "account_only") refused.push(name);
  }
  expect(self.commands.toSorted()).toEqual(all.filter((one) => !refused.includes(one)).toSorted());
  const again = await fetch(`${admin}/admin/v1/session`, { headers: { cookie } });
  expect(((await again.json()) as typeof self).commands).toEqual(self.commands);
  // The playground uses the key that it is given, whatever account its user is limited to.
  const played = await ask("/console/ask", {});
  expect(played.error.code).toBe(role === "metrics" ? "role_too_low" : "bad_input");
  if (account && self.commands.includes("status")) {
    const status = await ask("/admin/v1/status", {});
    expect(Object.keys(status).toSorted()).toEqual(
      ["frontends", "generation", "startedAt", "state", "url", "version"].toSorted(),
    );
  }
});

async function ownerCommands() {
  const { secret } = (await gateway.ask("admins.create", {
    name: `lists-${made++}`,
    role: "owner",
  })) as { secret: string };
  const answer = await fetch(`${admin}/admin/v1`, {
    headers: { authorization: `Bearer ${secret}` },
  });
  const { commands } = (await answer.json()) as { commands: readonly { name: string }[] };
  return { commands: Object.fromEntries(commands.map(({ name }) => [name, true])) };
}
let made = 0;
