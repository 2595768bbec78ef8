// The page on the admin listener at which people connect their accounts, and the requests that it
// sends. The page contains no data. The host requires a session and the page's own header for each
// request, so other websites cannot send them.
import { createHash } from "node:crypto";
import {
  fail,
  type Body,
  type JsonObject,
  type RequestHead,
  type Route,
  type RouteResponse,
} from "tollgate/plugin";
import {
  CALLBACK_PATH,
  CONNECT_PATH,
  type ConnectTicket,
  type UserConnections,
} from "../auth/user-connections.ts";

/** Returns the routes of the page. */
export function connectRoutes(connections: UserConnections): readonly Route[] {
  const post = (
    name: string,
    work: (x: RequestHead, ticket: ConnectTicket, body: Body) => Promise<JsonObject>,
  ): Route => ({
    method: "POST",
    path: `${CONNECT_PATH}/${name}`,
    listener: "admin",
    role: "viewer",
    body: "json",
    async handle(x, body) {
      const ticket = connections.openTicket(text(body, "ticket"));
      assertMayConnect(x, ticket);
      return { status: 200, headers: NO_STORE, body: await work(x, ticket, body) };
    },
  });
  const page = (path: string): Route => ({
    method: "GET",
    path,
    listener: "admin",
    allowUnauthenticated: true,
    handle: () => PAGE,
  });
  return [
    page(CONNECT_PATH),
    page(`${CALLBACK_PATH}/:server`),
    post("list", async (x, { id }) => ({
      person: x.identity?.name ?? "",
      client: id,
      servers: (await connections.list(id)).map((each) => ({ ...each })),
    })),
    post("start", async (x, ticket, body) => ({
      url: await connections.start(ticket, text(body, "server"), personOf(x)),
    })),
    post("disconnect", async (_, { id }, body) => {
      await connections.disconnect(id, text(body, "server"));
      return {};
    }),
    {
      method: "POST",
      path: `${CONNECT_PATH}/finish`,
      listener: "admin",
      role: "viewer",
      body: "json",
      async handle(x, body) {
        const server = await connections.finish(personOf(x), {
          server: text(body, "server"),
          state: text(body, "state"),
          code: optional(body, "code"),
          iss: optional(body, "iss"),
          error: optional(body, "error"),
        });
        return { status: 200, headers: NO_STORE, body: { server } };
      },
    },
  ];
}

const NO_STORE = { "cache-control": "no-store" };

/**
 * Throws if the person may not connect an account for the client. Otherwise a person who opens the
 * link of an attacker would connect an account for the attacker's key.
 */
function assertMayConnect(x: RequestHead, { issuer, subject }: ConnectTicket): void {
  const person = personOf(x);
  // The ID of a person is admin:<role>:<account>:<credential>.
  const [, role = "", , ...rest] = person.split(":");
  const isSelf = issuer !== undefined && rest.join(":") === `oidc:${issuer} ${subject}`;
  if (isSelf || role === "operator" || role === "owner") return;
  fail(
    "forbidden",
    "This link belongs to another user. Sign in as the user of the client, or as an operator.",
    { code: "connect_other_person" },
  );
}

const personOf = (x: RequestHead): string =>
  x.identity?.id ?? fail("unauthenticated", "Sign in first.", { code: "missing_api_key" });

function optional(body: Body, name: string): string | undefined {
  const value = body[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

const text = (body: Body, name: string): string =>
  optional(body, name) ??
  fail("invalid", `Missing \`${name}\`.`, { code: "invalid_value", param: name });

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 36rem; margin: 4rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; }
li { display: flex; gap: 1rem; align-items: center; padding: .6rem 0; border-bottom: 1px solid #8884; }
li span { flex: 1; } li small { color: GrayText; } ul { padding: 0; }
button { font: inherit; padding: .3rem .9rem; border-radius: .4rem; border: 1px solid #8888; cursor: pointer; }
button:focus-visible { outline: 3px solid Highlight; }
.error { color: #b3261e; } @media (prefers-color-scheme: dark) { .error { color: #ffb4ab; } }
`;

/** Script of the page. It keeps the link in the tab until the person has returned. */
const SCRIPT = `
const main = document.querySelector("main");
const show = (...nodes) => main.replaceChildren(...nodes);
const element = (name, text, of = {}) => Object.assign(document.createElement(name), { textContent: text, ...of });
const send = async (name, body) => {
  const response = await fetch("/mcp/connect/" + name, {
    method: "POST",
    headers: { "content-type": "application/json", "x-tollgate-console": "1" },
    body: JSON.stringify(body),
  });
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  throw Object.assign(new Error(answer.error?.message ?? "The request failed."), { status: response.status });
};
const showError = (error) => {
  const nodes = [element("p", error.message, { className: "error", role: "alert" })];
  if (error.status === 401) {
    nodes.push(element("p", "Sign in to the console in this browser, then open this link again."));
    nodes.push(element("a", "Sign in", { href: "/admin/v1/oidc" }));
  }
  show(...nodes);
};
const ticket = () => sessionStorage.getItem("ticket") ?? "";
const list = async (note) => {
  const wanted = new URLSearchParams(location.search).get("server");
  const { person, client, servers } = await send("list", { ticket: ticket() });
  const items = servers.map(({ server, state }) => {
    const item = element("li", "");
    if (server === wanted) item.style.fontWeight = "600";
    const isConnected = state === "connected";
    const button = element("button", isConnected ? "Disconnect" : state === "expired" ? "Connect again" : "Connect", {
      onclick: () =>
        (isConnected
          ? send("disconnect", { ticket: ticket(), server }).then(() => list())
          : send("start", { ticket: ticket(), server }).then(({ url }) => location.assign(url))
        ).catch(showError),
    });
    button.setAttribute("aria-label", button.textContent + " " + server);
    item.append(element("span", server), element("small", { none: "not connected", expired: "expired", connected: "connected" }[state]), button);
    return item;
  });
  const all = element("ul", "");
  all.append(...items);
  show(
    ...(note ? [element("p", note, { role: "status" })] : []),
    element("p", "You are signed in as " + person + ". Accounts that you connect are used for requests of the client " + client + "."),
    all,
  );
};
const run = async () => {
  const given = new URLSearchParams(location.hash.slice(1)).get("ticket");
  if (given !== null) {
    sessionStorage.setItem("ticket", given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  const [, of] = location.pathname.split("/callback/");
  if (of === undefined) return list();
  const { code, state, iss, error } = Object.fromEntries(new URLSearchParams(location.search));
  history.replaceState(null, "", "/mcp/connect");
  const { server } = await send("finish", { server: decodeURIComponent(of), code, state, iss, error });
  await list(server + " is connected. You can close this page and repeat the request.");
};
run().catch(showError);
`;

const hashOf = (content: string): string =>
  `'sha256-${createHash("sha256").update(content).digest("base64")}'`;

const PAGE: RouteResponse = {
  status: 200,
  headers: {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "content-security-policy": `default-src 'none'; connect-src 'self'; script-src ${hashOf(SCRIPT)}; style-src ${hashOf(STYLE)}; frame-ancestors 'none'; base-uri 'none'`,
  },
  body: Buffer.from(
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Connect accounts</title><style>${STYLE}</style></head><body><h1>Connect accounts</h1><main><p>Loading…</p></main><script>${SCRIPT}</script></body></html>`,
  ),
};
