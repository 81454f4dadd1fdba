// The receiver of a team that runs on Postgres: Fastify takes the delivery; one transaction keeps its id and
// queues its payload with pg-boss; then it answers 202. A redelivery finds its id and queues nothing.
//
// DATABASE_URL, GITHUB_WEBHOOK_SECRET and POOL come from the environment; the port is printed when it listens.

import { createHash, createHmac, timingSafeEqual } from "node:crypto";

import fastify from "fastify";
import pg from "pg";
import { PgBoss } from "pg-boss";

const QUEUE = "github.webhook";
const LARGEST_BODY = 25 * 1024 * 1024;
const { DATABASE_URL: connectionString, GITHUB_WEBHOOK_SECRET: secret, POOL: max } = process.env;

// Another process works on the jobs and looks after the queue.
const boss = new PgBoss({ connectionString, max: 1, supervise: false, schedule: false });
boss.on("error", (error) => console.error(error.message));
await boss.start();
await boss.createQueue(QUEUE, { deleteAfterSeconds: 3600 });

const pool = new pg.Pool({ connectionString, max: Number(max), min: Number(max), idleTimeoutMillis: 0 });
pool.on("error", (error) => console.error(error.message));
await pool.query(
  `CREATE TABLE IF NOT EXISTS webhook_deliveries (
     delivery_id text PRIMARY KEY,
     event       text        NOT NULL,
     action      text,
     job_id      uuid        NOT NULL,
     received_at timestamptz NOT NULL DEFAULT now()
   )`,
);

const REMEMBER = {
  name: "remember",
  text: `INSERT INTO webhook_deliveries (delivery_id, event, action, job_id) VALUES ($1, $2, $3, $4)
         ON CONFLICT DO NOTHING`,
};

/** Whether the signature GitHub sent is that of these bytes, in a time that does not depend on how much fits. */
function genuine(signature, body) {
  const sent = /^sha256=([0-9a-f]{64})$/.exec(signature ?? "");
  return sent !== null && timingSafeEqual(Buffer.from(sent[1], "hex"), createHmac("sha256", secret).update(body).digest());
}

/** The same delivery has the same job, whenever it comes: a UUID of its id's hash. */
function jobId(delivery) {
  const hash = createHash("sha256").update(delivery).digest("hex");
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}

/** pg-boss asks on this transaction's connection; its one INSERT is prepared there, too. */
function executor(client) {
  return { executeSql: (text, values) => client.query({ name: "send", text, values }) };
}

/** Keep the delivery and queue its job, both or none; false when the delivery was known. */
async function store(delivery, event, payload) {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const id = jobId(delivery);
    const { rowCount } = await client.query({ ...REMEMBER, values: [delivery, event, payload.action ?? null, id] });
    if (rowCount === 1) await boss.send(QUEUE, { delivery, event, payload }, { id, db: executor(client) });
    await client.query("COMMIT");
    client.release();
    return rowCount === 1;
  } catch (error) {
    client.release(error);
    throw error;
  }
}

const app = fastify({ bodyLimit: LARGEST_BODY });
// The signature is over the bytes as they came, so the body stays a buffer until it was checked.
app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
app.post("/webhooks/github", async (request, reply) => {
  if (!genuine(request.headers["x-hub-signature-256"], request.body)) {
    return reply.code(401).send({ status: "bad_signature" });
  }
  const { "x-github-delivery": delivery, "x-github-event": event } = request.headers;
  if (!delivery || !event) return reply.code(400).send({ status: "no_delivery" });
  let payload;
  try {
    payload = JSON.parse(request.body);
  } catch {
    return reply.code(400).send({ status: "malformed_json" });
  }
  const fresh = await store(delivery, event, payload);
  return reply.code(202).send({ status: fresh ? "enqueued" : "duplicate" });
});
await app.listen({ host: "127.0.0.1", port: 0 });
console.log(app.server.address().port);
