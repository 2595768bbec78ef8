// Admins page: the users that may sign in with their roles, and the open sessions.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { useCommand, type QueryState, useQuery } from "../use-query.ts";
import { icon } from "../parts/icons.ts";
import { Select, TextField } from "../parts/fields.ts";
import { ConfirmButton, Dialog, toast } from "../parts/overlay.ts";
import {
  Box,
  CopyButton,
  EmptyState,
  Badge,
  NoteBox,
  CommandLineHint,
  QueryResult,
  ErrorNote,
} from "../parts/basics.ts";
import { Table } from "../parts/table.ts";
import { isAllowed } from "../session.ts";
import { formatAgo, formatDateTime } from "../format.ts";

interface Admin {
  readonly id: string;
  readonly name?: string;
  readonly role: string;
  readonly account?: string;
  readonly created: number;
  readonly expires?: number;
  readonly state: "valid" | "expired" | "revoked";
}
/** An admin that gateway.yaml defines. */
interface ConfiguredAdmin {
  readonly name: string;
  readonly kind: "token" | "group";
  readonly role: string;
  readonly account?: string;
}
interface AdminsResponse {
  readonly admins: readonly Admin[];
  readonly tokens: readonly { readonly name: string; readonly role: string }[];
  readonly oidc: {
    readonly issuer: string;
    readonly roles: readonly {
      readonly group: string;
      readonly role: string;
      readonly account?: string;
    }[];
  } | null;
}
interface Session {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  readonly account?: string;
  readonly address: string;
  readonly startedAt: number;
  readonly lastUsedAt: number;
  readonly expiresAt: number;
}

const ROLES = [
  ["viewer", "viewer: reads"],
  ["operator", "operator: can make changes that can be undone"],
  ["owner", "owner: can make all changes"],
  ["metrics", "metrics: can only read metrics"],
] as const;

export function AdminsPage() {
  const admins = useQuery<AdminsResponse>("admins.list", {}, { intervalMs: 15_000 });
  const sessions = useQuery<{ sessions: readonly Session[] }>(
    "sessions.list",
    {},
    { intervalMs: 10_000 },
  );
  const [making, make] = useState(false);
  return html` <div class="row">
      <span class="grow"></span>
      ${isAllowed("admins.create") && html`<button type="button" class="button main" onClick=${() => make(true)}>${icon("accounts")}New admin</button>`}
    </div>
    <${QueryResult} of=${admins}
      >${(of: AdminsResponse) => html`<${AdminTable} rows=${of.admins} again=${admins.refetch} /><${ConfiguredAdmins} of=${of} />`}<//
    >
    ${isAllowed("sessions.list") && html`<${Sessions} of=${sessions} />`}
    <${CommandLineHint} line="tollgate admins list" />
    ${making && html`<${NewAdmin} close=${() => make(false)} made=${admins.refetch} />`}`;
}

function AdminTable({ rows, again }: { rows: readonly Admin[]; again: () => void }) {
  const end = useCommand<unknown>("admins.revoke");
  const run = async (one: Admin) => {
    if (!(await end.run({ id: one.id }))) return;
    toast(`${one.name ?? one.id} was revoked, and its sessions were ended.`);
    again();
  };
  return html`<${Box} flush=${true} title="Admin tokens">
    ${end.error && html`<${ErrorNote} problem=${end.error} />`}
    <${Table}
      label="Admins"
      rows=${rows}
      rowId=${(row: Admin) => row.id}
      empty=${html`<${EmptyState} of="audit"><p>No admin has a token in the store. An admin token gives access to this console and the admin API, but not to models.</p><//>`}
      columns=${[...ADMIN_COLUMNS, { name: "", render: (row: Admin) => row.state === "valid" && isAllowed("admins.revoke") && html`<${ConfirmButton} name="Revoke" what=${`Revoke ${row.name ?? row.id}`} run=${() => run(row)} />` }]}
    />
  <//>`;
}

/** Admins that gateway.yaml defines. They can be changed only in that file. */
function ConfiguredAdmins({ of: { tokens, oidc } }: { of: AdminsResponse }) {
  const rows: ConfiguredAdmin[] = [
    ...tokens.map((each) => ({ ...each, kind: "token" as const })),
    ...(oidc?.roles ?? []).map(({ group, ...role }) => ({
      name: group,
      kind: "group" as const,
      ...role,
    })),
  ];
  return html`<${Box} flush=${true} title="Defined in gateway.yaml">
    <${Table}
      label="Defined in gateway.yaml"
      rows=${rows}
      rowId=${(row: ConfiguredAdmin) => `${row.kind} ${row.name}`}
      empty=${html`<${EmptyState} of="audit"><p>gateway.yaml has no tokens under admin.tokens and no groups under admin.oidc.roles.</p><//>`}
      columns=${CONFIGURED_COLUMNS}
    />
    ${oidc && html`<p class="small quiet in">Groups are from <code class="break">${oidc.issuer}</code>. The first matching role applies.</p>`}
  <//>`;
}

const CONFIGURED_COLUMNS = [
  {
    name: "Name",
    isRowHeader: true,
    sortKey: (row: ConfiguredAdmin) => row.name,
    render: (row: ConfiguredAdmin) => html`<span class="break">${row.name}</span>`,
  },
  {
    name: "Signs in with",
    sortKey: (row: ConfiguredAdmin) => row.kind,
    render: (row: ConfiguredAdmin) =>
      row.kind === "token" ? "a token" : "the identity provider, through this group",
  },
  {
    name: "Role",
    sortKey: (row: ConfiguredAdmin) => row.role,
    render: (row: ConfiguredAdmin) =>
      html`${row.role}${row.account && html`<div class="small faint">account ${row.account}</div>`}`,
  },
];

const ADMIN_COLUMNS = [
  {
    name: "Admin",
    isRowHeader: true,
    sortKey: (row: Admin) => row.name ?? row.id,
    render: (row: Admin) => html`<span class="break">${row.name ?? row.id}</span>`,
  },
  {
    name: "State",
    render: (row: Admin) =>
      html`<${Badge} tone=${row.state === "valid" ? "good" : "bad"}>${row.state}<//>`,
  },
  {
    name: "Role",
    sortKey: (row: Admin) => row.role,
    render: (row: Admin) =>
      html`${row.role}${row.account && html`<div class="small faint">account ${row.account}</div>`}`,
  },
  {
    name: "Created",
    sortKey: (row: Admin) => row.created,
    render: (row: Admin) =>
      html`<span class="nowrap" title=${formatDateTime(row.created)}
        >${formatAgo(row.created)}</span
      >`,
  },
  {
    name: "Expires",
    render: (row: Admin) =>
      row.expires
        ? html`<span class="nowrap" title=${formatDateTime(row.expires)}
            >${formatAgo(row.expires)}</span
          >`
        : html`<span class="faint">never</span>`,
  },
];

function Sessions({ of }: { of: QueryState<{ sessions: readonly Session[] }> }) {
  const end = useCommand<{ revoked: number }>("sessions.revoke");
  const run = async (id?: string) => {
    const done = await end.run(id === undefined ? {} : { id });
    if (!done) return;
    toast(`Sessions revoked: ${done.revoked}.`);
    of.refetch();
  };
  return html`<${Box}
    flush=${true}
    title="Sessions"
    actions=${isAllowed("sessions.revoke") && html`<${ConfirmButton} name="Revoke" what="Sign out all" run=${() => void run()} />`}
  >
    ${end.error && html`<${ErrorNote} problem=${end.error} />`}
    <${QueryResult} of=${of}
      >${({ sessions }: { sessions: readonly Session[] }) =>
        html`<${Table}
          label="Sessions"
          rows=${sessions}
          rowId=${(row: Session) => row.id}
          empty=${html`<${EmptyState} of="audit"><p>No admin is signed in.</p><//>`}
          columns=${[...SESSION_COLUMNS, { name: "", render: (row: Session) => html`<${ConfirmButton} name="Revoke" what=${`Sign ${row.name} out`} run=${() => void run(row.id)} />` }]}
        />`}<//
    >
  <//>`;
}

const SESSION_COLUMNS = [
  {
    name: "Admin",
    isRowHeader: true,
    render: (row: Session) => html`<span class="break">${row.name}</span>`,
  },
  {
    name: "Role",
    render: (row: Session) =>
      html`${row.role}${row.account && html`<div class="small faint">account ${row.account}</div>`}`,
  },
  { name: "From", render: (row: Session) => html`<code>${row.address}</code>` },
  {
    name: "Signed in",
    render: (row: Session) =>
      html`<span class="nowrap" title=${formatDateTime(row.startedAt)}
        >${formatAgo(row.startedAt)}</span
      >`,
  },
  {
    name: "Last active",
    render: (row: Session) => html`<span class="nowrap">${formatAgo(row.lastUsedAt)}</span>`,
  },
  {
    name: "Expires",
    render: (row: Session) =>
      html`<span class="nowrap" title=${formatDateTime(row.expiresAt)}
        >${formatAgo(row.expiresAt)}</span
      >`,
  },
];

function NewAdmin({ close, made }: { close: () => void; made: () => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState("viewer");
  const [account, setAccount] = useState("");
  const [ends, end] = useState("");
  const create = useCommand<{ secret: string; admin: Admin }>("admins.create");
  const submit = async (event: Event) => {
    event.preventDefault();
    const done = await create.run({
      name: name.trim(),
      role,
      account: account.trim() || undefined,
      expires: ends ? Date.parse(ends) : undefined,
    });
    if (done) made();
  };
  if (create.value)
    return html`<${Dialog} title=${`${create.value.admin.name} was created`} close=${close}>
      <${NoteBox} tone="good"
        ><p>The token is shown only once.</p>
        <div class="row">
          <span class="secret grow">${create.value.secret}</span
          ><${CopyButton} text=${create.value.secret} name="Copy the token" /></div
      ><//>
      <footer><button type="button" class="button main" onClick=${close}>Done</button></footer>
    <//>`;
  return html`<${Dialog} title="New admin" close=${close}>
    <form class="form" onSubmit=${submit}>
      <${TextField}
        name="Name"
        value=${name}
        set=${setName}
        required=${true}
        hint="Shown in the audit log."
      />
      <${Select} name="Role" value=${role} set=${setRole} options=${ROLES} />
      <div class="filters">
        <${TextField}
          name="Limited to an account"
          wide=${true}
          value=${account}
          set=${setAccount}
          placeholder="the whole gateway"
        />
        <${TextField} name="Expires" type="datetime-local" value=${ends} set=${end} />
      </div>
      ${create.error && html`<${ErrorNote} problem=${create.error} />`}
      <footer>
        <button type="button" class="button" onClick=${close}>Cancel</button
        ><button
          type="submit"
          class="button main"
          disabled=${create.isRunning || name.trim() === ""}
        >
          Create the admin
        </button>
      </footer>
    </form>
  <//>`;
}
