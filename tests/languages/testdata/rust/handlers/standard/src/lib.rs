//! What people use of the standard library and of crates, without a thought of WebAssembly.

use rand::{Rng, SeedableRng};
use runner_sdk::{handler, ok, Context, Request, Result};
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant, SystemTime};
use std::{env, fs, io, net, process, thread};

handler!(prints, |_, _| {
    println!("a line of {}", "println");
    eprintln!("a line of eprintln");
    print!("two parts ");
    print!("of one line");
    Ok(ok("printed"))
});

handler!(tells, |ctx, _| {
    let of_host = ctx.now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as i64;
    let of_std = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as i64;
    let mut times = BTreeMap::new();
    times.insert("SystemTime", of_std - of_host);
    times.insert("Utc", chrono::Utc::now().timestamp_millis() - of_host);
    times.insert("Local", chrono::Local::now().timestamp_millis() - of_host);
    times.insert("offset of Local", chrono::Local::now().offset().local_minus_utc().into());
    Ok(ok(times))
});

handler!(sleeps, |_, req: &Request| {
    let wanted = Duration::from_millis(req.query("ms").unwrap().parse().unwrap());
    let began = Instant::now();
    thread::sleep(wanted);
    Ok(ok(began.elapsed() >= wanted))
});

handler!(exits, |_, req: &Request| {
    print!("before the exit");
    process::exit(req.query("status").unwrap().parse().unwrap())
});

handler!(panics, |_, _| {
    let none: Option<u8> = env::args().next().map(|_| 1);
    Ok(ok(none.expect("there is an argument")))
});

#[inline(never)]
fn deep(n: u64, at: &mut [u8; 64]) -> u64 {
    at[n as usize % 64] = n as u8;
    let mut more = *at;
    if n == u64::MAX {
        0
    } else {
        deep(n + 1, &mut more) + more[0] as u64
    }
}

handler!(recurses, |_, _| Ok(ok(deep(0, &mut [0; 64]))));

static UNCHANGED: [u64; 512] = [7; 512];

handler!(sums, |_, _| Ok(ok(UNCHANGED.iter().sum::<u64>())));

// What is not there is an error, and not a trap.
handler!(lacks, |_, _| {
    let mut results = BTreeMap::new();
    let mut check = |what, failed: bool| results.insert(what, failed);
    check("open", fs::File::open("/etc/passwd").is_err());
    check("create", fs::File::create("made").is_err());
    check("list", fs::read_dir("/etc").is_err());
    check("remove", fs::remove_file("/etc/passwd").is_err());
    check("connect", net::TcpStream::connect("127.0.0.1:80").is_err());
    check("listen", net::TcpListener::bind("127.0.0.1:0").is_err());
    check("thread", thread::Builder::new().spawn(|| ()).is_err());
    check("process", process::Command::new("ls").status().is_err());
    check("arguments", env::args().count() == 0);
    check("variables", env::vars().count() == 0);
    check("input", io::stdin().read_line(&mut String::new()).unwrap() == 0);
    Ok(ok(results))
});

handler!(drawCrates, draw);

fn draw(_: &Context, _: &Request) -> Result {
    let map: HashMap<u32, ()> = (0..1000).map(|i| (i, ())).collect();
    let mut bytes = [0; 8];
    getrandom::getrandom(&mut bytes).unwrap();
    let mut drawn = BTreeMap::new();
    drawn.insert("HashMap", format!("{:?}", map.keys().take(10).collect::<Vec<_>>()));
    drawn.insert("RandomState", RandomState::new().build_hasher().finish().to_string());
    drawn.insert("getrandom", format!("{:?}", bytes));
    drawn.insert("rand::random", rand::random::<u64>().to_string());
    drawn.insert("rand::thread_rng", rand::thread_rng().gen::<u64>().to_string());
    drawn.insert("StdRng::from_entropy", rand::rngs::StdRng::from_entropy().gen::<u64>().to_string());
    drawn.insert("Uuid::new_v4", uuid::Uuid::new_v4().to_string());
    Ok(ok(drawn))
}
