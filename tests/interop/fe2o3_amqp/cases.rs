//! What a Rust program does to the broker with fe2o3-amqp, which resumes deliveries (core 2.6.13).

use std::collections::HashSet;
use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;

use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::link::delivery::Delivery;
use fe2o3_amqp::link::receiver::{DetachedReceiver, ResumingReceiver};
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::types::definitions::{ReceiverSettleMode, SenderSettleMode};
use fe2o3_amqp::types::messaging::{
    DistributionMode, Outcome, Source, Target, TerminusExpiryPolicy,
};
use fe2o3_amqp::{Connection, Receiver, Sender, Session};
use tokio::io::{copy, duplex, split, AsyncReadExt, AsyncWriteExt, DuplexStream, WriteHalf};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// The descriptor with which the body of a disposition begins.
const DISPOSITION: [u8; 3] = [0x00, 0x53, 0x15];

/// Long enough for a loaded machine.
const SOON: Duration = Duration::from_secs(20);

type Checked<T> = Result<T, Box<dyn Error>>;
type Work = Pin<Box<dyn Future<Output = Checked<()>>>>;

struct Case {
    name: &'static str,
    body: Box<dyn Fn(String) -> Work>,
}

/// Return one case: its name, the requirements that it proves, and what is done at an address.
fn shows<F, R>(name: &'static str, _: &str, body: F) -> Case
where
    F: Fn(String) -> R + 'static,
    R: Future<Output = Checked<()>> + 'static,
{
    Case { name, body: Box::new(move |address| Box::pin(body(address))) }
}

fn cases() -> Vec<Case> {
    vec![
        shows("a receiver resumes its deliveries after a detach", "RCV-08", detached_receiver),
        shows("a sender resumes a delivery whose outcome was lost", "PRD-03", detached_sender),
        shows("a receiver without its map gets all anew, in order", "RCV-08", lost_receiver),
    ]
}

/// A connection with a session; a case breaks it, or loses the outcomes that the broker writes.
struct Line {
    session: SessionHandle<()>,
    _connection: ConnectionHandle<()>,
    loses_outcomes: Arc<AtomicBool>,
    requests: JoinHandle<()>,
    answers: JoinHandle<()>,
}

impl Line {
    async fn open(container_id: &str) -> Checked<Line> {
        let url = std::env::var("BROKER_URL")?;
        let (from_broker, mut to_broker) =
            TcpStream::connect(url.trim_start_matches("amqp://")).await?.into_split();
        let (near, far) = duplex(1 << 16);
        let (mut from_client, to_client) = split(far);
        let loses_outcomes = Arc::new(AtomicBool::new(false));
        let loses = loses_outcomes.clone();
        let requests = tokio::spawn(async move {
            let _ = copy(&mut from_client, &mut to_broker).await;
        });
        let answers = tokio::spawn(async move {
            let _ = pass_on(from_broker, to_client, &loses).await;
        });
        let mut connection =
            Connection::builder().container_id(container_id).open_with_stream(near).await?;
        let session = Session::begin(&mut connection).await?;
        Ok(Line { session, _connection: connection, loses_outcomes, requests, answers })
    }

    /// Break the connection.
    fn cut(&self) {
        self.requests.abort();
        self.answers.abort();
    }
}

/// Pass on the header and the frames of the broker, without dispositions while `loses` is set.
async fn pass_on(
    mut from: OwnedReadHalf,
    mut to: WriteHalf<DuplexStream>,
    loses: &AtomicBool,
) -> io::Result<()> {
    let mut head = [0; 8];
    from.read_exact(&mut head).await?;
    to.write_all(&head).await?;
    loop {
        from.read_exact(&mut head).await?;
        let size = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let mut body = vec![0; size - head.len()];
        from.read_exact(&mut body).await?;
        if loses.load(Ordering::SeqCst) && body.starts_with(&DISPOSITION) {
            continue;
        }
        to.write_all(&head).await?;
        to.write_all(&body).await?;
    }
}

fn source(address: &str) -> Source {
    Source::builder()
        .address(address)
        .expiry_policy(TerminusExpiryPolicy::ConnectionClose)
        .timeout(60u32)
        .build()
}

async fn receiver(line: &mut Line, address: &str) -> Checked<Receiver> {
    Ok(Receiver::builder()
        .name("in")
        .source(source(address))
        .receiver_settle_mode(ReceiverSettleMode::Second)
        .attach(&mut line.session)
        .await?)
}

async fn fill(address: &str, texts: &[&str]) -> Checked<()> {
    let mut line = Line::open("filler").await?;
    let mut sender = Sender::attach(&mut line.session, "out", address).await?;
    for text in texts {
        sender.send(*text).await?;
    }
    sender.close().await?;
    Ok(())
}

/// Return all texts that are at an address, as another client sees them, until `last` comes.
async fn taken(address: &str, last: &str) -> Checked<Vec<String>> {
    fill(address, &[last]).await?;
    let mut line = Line::open("taker").await?;
    let mut taker = Receiver::attach(&mut line.session, "in", address).await?;
    let mut found = Vec::new();
    loop {
        let delivery: Delivery<String> = taker.recv().await?;
        taker.accept(&delivery).await?;
        if delivery.body() == last {
            break;
        }
        found.push(delivery.body().clone());
    }
    taker.close().await?;
    Ok(found)
}

fn same<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Checked<()> {
    if found == expected {
        return Ok(());
    }
    Err(format!("found {found:?}, expected {expected:?}").into())
}

/// Receive these texts, and accept them.
async fn receive(receiver: &mut Receiver, texts: &[&str]) -> Checked<()> {
    for text in texts {
        let delivery: Delivery<String> = receiver.recv().await?;
        same(delivery.body().as_str(), *text)?;
        receiver.accept(&delivery).await?;
    }
    Ok(())
}

async fn detached_receiver(address: String) -> Checked<()> {
    fill(&address, &["one", "two"]).await?;
    let mut line = Line::open(&address).await?;
    let mut former = receiver(&mut line, &address).await?;
    let _one: Delivery<String> = former.recv().await?;
    let _two: Delivery<String> = former.recv().await?;
    let detached = former.detach().await.map_err(|(_, error)| error)?;
    let resuming = detached.resume().await.map_err(|error| error.kind)?;
    let ResumingReceiver::Resume(mut resumed) = resuming else {
        return Err("the link did not resume its deliveries".into());
    };
    receive(&mut resumed, &["one", "two"]).await?;
    resumed.close().await?;
    same(taken(&address, "last").await?, vec![])
}

async fn detached_sender(address: String) -> Checked<()> {
    let mut line = Line::open(&address).await?;
    let target = Target::builder()
        .address(address.as_str())
        .expiry_policy(TerminusExpiryPolicy::ConnectionClose)
        .timeout(60u32)
        .build();
    let mut former = Sender::builder()
        .name("out")
        .target(target)
        .sender_settle_mode(SenderSettleMode::Unsettled)
        .receiver_settle_mode(ReceiverSettleMode::Second)
        .attach(&mut line.session)
        .await?;
    former.send("zero").await?;
    line.loses_outcomes.store(true, Ordering::SeqCst);
    let outcome = former.send_batchable("one").await?;
    seen(&address, "one").await?;
    let detached = former.detach().await.map_err(|(_, error)| error)?;
    line.loses_outcomes.store(false, Ordering::SeqCst);
    let mut resumed = detached.resume().await.map_err(|error| error.kind)?;
    let Outcome::Accepted(_) = outcome.await? else {
        return Err("the resumed delivery was not accepted".into());
    };
    resumed.send("two").await?;
    resumed.close().await?;
    same(taken(&address, "last").await?, ["zero", "one", "two"].map(String::from).to_vec())
}

/// This client attaches a link without its map, if that is on another session than before.
async fn lost_receiver(address: String) -> Checked<()> {
    fill(&address, &["one", "two"]).await?;
    let mut line = Line::open(&address).await?;
    let mut former = receiver(&mut line, &address).await?;
    let _one: Delivery<String> = former.recv().await?;
    let _two: Delivery<String> = former.recv().await?;
    line.cut();
    let detached: DetachedReceiver = match former.detach().await {
        Ok(detached) | Err((detached, _)) => detached,
    };
    let other = Line::open(&address).await?;
    let resuming = detached.resume_on_session(&other.session).await.map_err(|error| error.kind)?;
    let mut again = resuming.into_receiver();
    receive(&mut again, &["one", "two"]).await?;
    again.close().await?;
    same(taken(&address, "last").await?, vec![])
}

/// Wait until a browser sees a text at an address.
async fn seen(address: &str, text: &str) -> Checked<()> {
    let mut line = Line::open("browser").await?;
    let source =
        Source::builder().address(address).distribution_mode(DistributionMode::Copy).build();
    let mut browser =
        Receiver::builder().name("in").source(source).attach(&mut line.session).await?;
    loop {
        let delivery: Delivery<String> = browser.recv().await?;
        browser.accept(&delivery).await?;
        if delivery.body() == text {
            browser.close().await?;
            return Ok(());
        }
    }
}

/// Return an address that no other case or run uses.
fn address() -> String {
    static CASES: AtomicU32 = AtomicU32::new(0);
    format!("rust-{}-{}", std::process::id(), CASES.fetch_add(1, Ordering::Relaxed))
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for each in text.chars() {
        match each {
            '"' | '\\' => out.extend(['\\', each]),
            each if each < ' ' => out.push_str(&format!("\\u{:04x}", each as u32)),
            each => out.push(each),
        }
    }
    out + "\""
}

/// Run the cases with the names that are the arguments, one after another.
#[tokio::main]
async fn main() {
    let wanted: HashSet<String> = std::env::args().skip(1).collect();
    for case in cases().iter().filter(|case| wanted.contains(case.name)) {
        let problem = match tokio::time::timeout(SOON, (case.body)(address())).await {
            Ok(Ok(())) => String::from("null"),
            Ok(Err(error)) => quoted(&format!("{error} ({error:?})")),
            Err(_) => quoted("not finished in time"),
        };
        println!("{{\"case\": {}, \"problem\": {problem}}}", quoted(case.name));
    }
}
