use stepwell::{Engine, Error};

async fn send(engine: &Engine) -> Result<(), Error> {
    engine.signal("paid", &7).key("evt-1").await?;
    Ok(())
}

fn main() {}
