use std::io::{self, BufRead};

fn main() {
    let mut sum = 0i64;
    for line in io::stdin().lock().lines() {
        match line.unwrap().trim().parse::<i64>() {
            Ok(n) => sum += n,
            Err(err) => {
                println!("Status: 422\nContent-Type: text/plain\n\n{}", err);
                std::process::exit(0);
            }
        }
    }
    println!("Content-Type: text/plain\n\n{}", sum);
}
